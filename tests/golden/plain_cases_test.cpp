// The golden programs without checkpoint.
#include "golden/models.h"

using namespace golden;

TEST_CASE("golden tutorial_f: three layers of sin(W x)") {
  const Json& c = case_named("tutorial_f");
  check_case("tutorial_f", f3layers, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0]);
}
TEST_CASE("golden tutorial_loss and tutorial_loss_named: parameters in a list") {
  const Json& c = case_named("tutorial_loss");
  check_case("tutorial_loss", loss_of<predict>, arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
  check_case("tutorial_loss_named", loss_of<predict_named>, arg(c, 0), arg(c, 1)[0], arg(c, 2)[0]);
}
TEST_CASE("golden tutorial_chain8 and tutorial_chain16: chains of sin") {
  check_case("tutorial_chain8", chain<8>, arg(case_named("tutorial_chain8"), 0)[0]);
  check_case("tutorial_chain16", chain<16>, arg(case_named("tutorial_chain16"), 0)[0]);
}
TEST_CASE("golden tutorial_scan_layers: scan over stacked weights") {
  const Json& c = case_named("tutorial_scan_layers");
  auto net = [](Array x, Array all_W, Array all_b) {
    auto layer = [](Array h, std::pair<Array, Array> Wb) {
      Array y = rp::dot(h, Wb.first);
      y = y + Wb.second;
      return std::pair{rp::maximum(y, 0.), rp::none};
    };
    return rp::scan(layer, x, std::pair{all_W, all_b}).first;
  };
  check_case("tutorial_scan_layers", net, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0]);
}
TEST_CASE("golden mlp_none: dense layers with bias and relu") {
  const Json& c = case_named("mlp_none");
  check_case("mlp_none", mlp, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0], arg(c, 4)[0]);
}
TEST_CASE("golden attention_none: batched attention with a hand-written softmax") {
  const Json& c = case_named("attention_none");
  check_case("attention_none", attention, arg(c, 0)[0], arg(c, 1)[0], arg(c, 2)[0], arg(c, 3)[0]);
}
TEST_CASE("golden scan_plain: a scan with carry and outputs") {
  const Json& c = case_named("scan_plain");
  auto f = [](Array carry, Array xs) {
    auto body = [](Array c0, Array x) {
      Array s = rp::sin(c0);
      return std::pair{s * x, c0};
    };
    return rp::scan(body, carry, xs);
  };
  check_case("scan_plain", f, arg(c, 0)[0], arg(c, 1)[0]);
}
TEST_CASE("golden fori_static: a loop with C++ bounds") {
  const Json& c = case_named("fori_static");
  auto f = [](Array x) {
    return rp::fori_loop(
        0, 3, [](Array, Array v) { return rp::sin(v); }, x);
  };
  check_case("fori_static", f, arg(c, 0)[0]);
}
