#include "policy_text.h"

#include "base/nearest.h"
#include "input.h"
#include "reprise/errors.h"

#include <algorithm>
#include <charconv>

namespace reprise::cli {
namespace {

namespace policies = checkpoint_policies;

class PolicyParser;
struct KnownPolicy : PolicyName {
  Policy (*read)(PolicyParser&);  // reads the arguments
};
const KnownPolicy* find_policy(std::string_view name);

class PolicyParser {
 public:
  explicit PolicyParser(const std::string& text) : text_(text) {}

  Policy parse() {
    const Policy p = policy();
    if (at_ != text_.size()) fail_here("`|`, `&` or the end is expected");
    return p;
  }

  Policy policy() {
    Policy p = term();
    while (accept('|')) p = p | term();
    return p;
  }
  Policy factor() {
    // Policies hold policies: each one asked, and freed, asks and frees those inside.
    constexpr int most_parts = 500;
    if (++parts_ > most_parts) fail_here(str("at most ", most_parts, " parts are expected"));
    if (accept('!')) return !factor();
    if (accept('(')) {
      Policy p = policy();
      if (!accept(')')) fail_here("`)` is expected");
      return p;
    }
    return named();
  }

  void expect(char c, const char* before) {
    if (!accept(c)) fail_here(str("`", c, "` and ", before, " are expected"));
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Up to the next mark of the grammar; a name may contain spaces.
  std::string word() {
    skip_space();
    const std::size_t end = std::min(text_.find_first_of(",:|&()!", at_), text_.size());
    std::string word = text_.substr(at_, end - at_);
    while (word.ends_with(' ')) word.pop_back();
    at_ = end;
    return word;
  }
  std::vector<std::string> words() {
    std::vector<std::string> list;
    do {
      list.push_back(word());
      if (list.back().empty()) fail_here("a name is expected");
    } while (accept(','));
    return list;
  }
  std::size_t bytes() {
    const std::size_t begin = at_;
    const std::string digits = word();
    std::size_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size()) {
      at_ = begin;
      fail_here("a number of bytes is expected");
    }
    return value;
  }
  [[noreturn]] void fail_here(const std::string& what) const {
    // Of a long text, what is around the place.
    constexpr std::size_t around = 60;
    const std::size_t begin = at_ > around ? at_ - around : 0;
    throw UsageError(str("--policy: ", what, "\n  ", text_.substr(begin, 2 * around), "\n  ",
                         std::string(at_ - begin, ' '), "^"));
  }

 private:
  Policy term() {
    Policy p = factor();
    while (accept('&')) p = p & factor();
    return p;
  }
  Policy named() {
    skip_space();
    const std::size_t begin = at_;
    const std::string name = word();
    const KnownPolicy* known = find_policy(name);
    if (known == nullptr) {
      at_ = begin;
      if (name == "none") fail_here("`none` is no checkpoint at all and stands alone");
      fail_here(name.empty() ? "a policy is expected" : unknown(name));
    }
    return known->read(*this);
  }
  static std::string unknown(const std::string& name);
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int parts_ = 0;
};

Policy read_offloaded_names(PolicyParser& p) {
  p.expect(':', "the names to save");
  policies::SaveAndOffload lists{{}, {}, "device", "pinned_host"};
  if (!p.accept(':')) {
    lists.names_which_can_be_saved = p.words();
    p.expect(':', "the names to offload");
  }
  lists.names_which_can_be_offloaded = p.words();
  return policies::save_and_offload_only_these_names(lists);
}
Policy read_both(PolicyParser& p) {
  p.expect(':', "two policies");
  const Policy a = p.factor();
  p.expect(',', "a second policy");
  const Policy b = p.factor();
  return policies::save_from_both_policies(a, b);
}
template <Policy (*make)(policies::Names)>
Policy read_names(PolicyParser& p) {
  p.expect(':', "names");
  return make(p.words());
}
template <Policy (*make)(std::size_t)>
Policy read_bytes(PolicyParser& p) {
  p.expect(':', "a number of bytes");
  return make(p.bytes());
}
template <const Policy& policy>
Policy read_plain(PolicyParser&) {
  return policy;
}
Policy read_offloaded_dots(PolicyParser&) {
  return policies::offload_dot_with_no_batch_dims("device", "pinned_host");
}

constexpr auto but_these = read_names<policies::save_anything_except_these_names_list>;
constexpr KnownPolicy known_policies[] = {
    {{"none", "", "all that the derivative reads: no checkpoint at all"}, nullptr},
    {{"nothing_saveable", "", "nothing: everything is computed again"},
     read_plain<policies::nothing_saveable>},
    {{"everything_saveable", "", "everything the backward pass reads"},
     read_plain<policies::everything_saveable>},
    {{"dots_saveable", "", "results of matrix products and convolutions"},
     read_plain<policies::dots_saveable>},
    {{"checkpoint_dots", "", "the same"}, read_plain<policies::checkpoint_dots>},
    {{"dots_with_no_batch_dims_saveable", "", "products without batch dimensions"},
     read_plain<policies::dots_with_no_batch_dims_saveable>},
    {{"checkpoint_dots_with_no_batch_dims", "", "the same"},
     read_plain<policies::checkpoint_dots_with_no_batch_dims>},
    {{"save_only_these_names", ":NAME,...", "the values named so"},
     read_names<policies::save_only_these_names_list>},
    {{"save_any_names_but_these", ":NAME,...", "all named values but these"},
     read_names<policies::save_any_names_but_these_list>},
    {{"save_anything_except_these_names", ":NAME,...", "everything but these and what they name"},
     but_these},
    {{"save_anything_but_these_names", ":NAME,...", "the same"}, but_these},
    {{"save_from_both_policies", ":POLICY,POLICY", "what either saves"}, read_both},
    {{"bytes_at_least", ":BYTES", "values of at least so many bytes"},
     read_bytes<policies::bytes_at_least>},
    {{"bytes_at_most", ":BYTES", "values of at most so many bytes"},
     read_bytes<policies::bytes_at_most>},
    {{"offload_dot_with_no_batch_dims", "", "products without batch dimensions, to the host"},
     read_offloaded_dots},
    {{"save_and_offload_only_these_names", ":NAME,...:NAME,...",
      "the first names; moves the second to the host"},
     read_offloaded_names},
};

const KnownPolicy* find_policy(std::string_view name) {
  const auto it = std::find_if(std::begin(known_policies), std::end(known_policies),
                               [&](const KnownPolicy& p) { return p.read && name == p.name; });
  return it == std::end(known_policies) ? nullptr : it;
}

std::string PolicyParser::unknown(const std::string& name) {
  const auto nearest = std::min_element(
      std::begin(known_policies), std::end(known_policies), [&](const auto& a, const auto& b) {
        return edit_distance(name, a.name) < edit_distance(name, b.name);
      });
  return str("there is no policy `", name, "`; the nearest is `", nearest->name, "`");
}

}  // namespace

PolicyChoice parse_policy(const std::string& text) {
  if (text == "none") return {PolicyChoice::none, text};
  try {
    return {PolicyChoice::given, text, PolicyParser(text).parse()};
  } catch (const TypeError& error) {  // a policy that the library refuses
    throw UsageError(str("--policy: ", error.what()));
  }
}

std::vector<PolicyChoice> parse_policies(const std::vector<std::string>& texts) {
  if (texts.empty()) return {PolicyChoice{}};
  std::vector<PolicyChoice> choices;
  for (const std::string& text : texts) {
    if (std::count(texts.begin(), texts.end(), text) > 1) {
      throw UsageError(str("--policy: `", text, "` is given twice"));
    }
    choices.push_back(parse_policy(text));
  }
  return choices;
}

std::span<const PolicyName> policy_names() {
  static const std::vector<PolicyName> names(std::begin(known_policies), std::end(known_policies));
  return names;
}

}  // namespace reprise::cli
