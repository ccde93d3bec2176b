// Checkpoint policies: values that say which known values the backward pass may keep.
//
//   rp::checkpoint(f, {.policy = rp::checkpoint_policies::dots_saveable});
//   rp::Policy p = dots_saveable | save_only_these_names("h");
//   rp::Policy q = [](const rp::EquationInfo& e) { return e.primitive == "cos"; };
#pragma once

#include "reprise/array.h"

#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise {

// What a policy may answer: keep the value, compute it again, or move it to other memory and back.
struct Saveable {};
struct Recompute {};
struct Offloadable {
  std::string src = "device", dst = "pinned_host";
};

// What a policy sees of an equation.
struct EquationInfo {
  std::string_view primitive;  // "dot_general"
  std::vector<Type> inputs, outputs;
  // checkpoint_name labels of its outputs, its own included
  std::vector<std::string> output_names;
  std::string name;                                         // of a `name` equation; else empty
  bool has_batch_dims = false;                              // of a dot_general
  std::vector<std::pair<std::string, std::string>> params;  // as printed
  std::size_t output_bytes() const;
};

struct PolicyImpl;    // src/remat/policies.cpp
struct PolicyRecord;  // a built-in policy

// Says of an equation whose value is known in the forward pass whether that value may be kept.
// Built-in ones are constants; they compose with | & ! and print themselves.
class Policy {
 public:
  using Answer = std::variant<Recompute, Saveable, Offloadable>;

  constexpr Policy() = default;  // none: nothing is saved
  constexpr explicit Policy(const PolicyRecord* r) : record_(r) {}
  explicit Policy(std::shared_ptr<const PolicyImpl> impl) : impl_(std::move(impl)) {}
  // Any callable (const EquationInfo&) -> bool, Saveable, Recompute, Offloadable, Answer, or an
  // optional of these (nullopt: recompute). `name` is what programs print.
  template <class F>
  requires(std::invocable<const F&, const EquationInfo&> &&
           !std::is_same_v<std::decay_t<F>, Policy>)
      Policy(F f, std::string name = "<lambda>")  // NOLINT: implicit by design
      : Policy(custom([f](const EquationInfo& e) { return answer(f(e)); }, std::move(name))) {}

  bool defined() const { return record_ != nullptr || impl_ != nullptr; }
  Answer operator()(const EquationInfo&) const;
  std::string str() const;                   // our text: dots_saveable | save_only_these_names('h')
  std::string jax_repr() const;              // JAX's text, as programs print it
  std::string key() const;                   // equal keys decide alike
  std::vector<std::string> names() const;    // that it mentions
  std::vector<Policy> alternatives() const;  // of p | q: those of p and of q; else itself
  const PolicyImpl* impl() const { return impl_.get(); }  // null: none, or a built-in one

 private:
  template <class T>
  static Answer answer(const T& t) {
    if constexpr (std::is_same_v<T, bool>) {
      return t ? Answer(Saveable{}) : Answer(Recompute{});
    } else if constexpr (std::is_same_v<T, std::nullopt_t>) {
      return Recompute{};
    } else if constexpr (requires {
                           t.has_value();
                           *t;
                         }) {
      return t ? answer(*t) : Answer(Recompute{});
    } else {
      static_assert(std::is_constructible_v<Answer, T>,
                    "a policy must return bool, rp::Saveable, rp::Recompute, rp::Offloadable or "
                    "std::nullopt");
      return Answer(t);
    }
  }
  static std::shared_ptr<const PolicyImpl> custom(std::function<Answer(const EquationInfo&)> f,
                                                  std::string name);
  const PolicyRecord* record_ = nullptr;
  std::shared_ptr<const PolicyImpl> impl_;
};
std::ostream& operator<<(std::ostream&, const Policy&);

Policy operator|(const Policy& a, const Policy& b);  // saved if either saves
Policy operator&(const Policy& a, const Policy& b);  // saved if both save
Policy operator!(const Policy& a);                   // saved if it does not save

namespace checkpoint_policies {

extern const PolicyRecord everything_record, nothing_record, dots_record, dots_no_batch_record;
inline constinit const Policy everything_saveable{&everything_record};
inline constinit const Policy nothing_saveable{&nothing_record};
inline constinit const Policy dots_saveable{&dots_record};  // matrix products and convolutions
inline constinit const Policy checkpoint_dots{&dots_record};
inline constinit const Policy dots_with_no_batch_dims_saveable{&dots_no_batch_record};
inline constinit const Policy checkpoint_dots_with_no_batch_dims{&dots_no_batch_record};

// By the names that checkpoint_name gave.
using Names = std::vector<std::string>;
Policy save_only_these_names_list(Names names);
Policy save_any_names_but_these_list(Names names);
Policy save_anything_except_these_names_list(Names names);
template <class... S>
Policy save_only_these_names(const S&... names) {
  return save_only_these_names_list({std::string(names)...});
}
template <class... S>
Policy save_any_names_but_these(const S&... names) {
  return save_any_names_but_these_list({std::string(names)...});
}
// Saves all but the named values and the values they name.
template <class... S>
Policy save_anything_except_these_names(const S&... names) {
  return save_anything_except_these_names_list({std::string(names)...});
}
template <class... S>
Policy save_anything_but_these_names(const S&... names) {
  return save_anything_except_these_names_list({std::string(names)...});
}
Policy save_from_both_policies(const Policy& a, const Policy& b);
Policy offload_dot_with_no_batch_dims(const std::string& offload_src,
                                      const std::string& offload_dst);
struct SaveAndOffload {
  Names names_which_can_be_saved, names_which_can_be_offloaded;
  std::string offload_src, offload_dst;
};
Policy save_and_offload_only_these_names(const SaveAndOffload& options);
Policy bytes_at_least(std::size_t bytes);  // values of at least / at most so many bytes
Policy bytes_at_most(std::size_t bytes);

}  // namespace checkpoint_policies
}  // namespace reprise
#pragma GCC visibility pop
