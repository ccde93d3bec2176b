// Policies from the text of a program, where they stand as Python prints them.
#include "remat/checkpoint.h"
#include "remat/within_budget.h"

#include <charconv>

namespace reprise {
namespace {

namespace policies = checkpoint_policies;

// What is between the two, null when the text is not framed by them.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  if (text.size() < before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after)) {
    return std::nullopt;
  }
  text.remove_prefix(before.size());
  text.remove_suffix(after.size());
  return text;
}

// frozenset({'a', 'b'}) or frozenset(); null for anything else.
std::optional<policies::Names> names_in(std::string_view text) {
  if (text == "frozenset()") return policies::Names{};
  const auto list = between(text, "frozenset({'", "'})");
  if (!list) return std::nullopt;
  policies::Names names;
  std::string_view rest = *list;
  constexpr std::string_view separator = "', '";
  for (std::size_t end = rest.find(separator); end != std::string_view::npos;
       end = rest.find(separator)) {
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + separator.size());
  }
  names.emplace_back(rest);
  return names;
}

}  // namespace

std::optional<Policy> policy_from_repr(std::string_view repr) {
  // A function, as newer JAX has them all, is printed with its address, which is another one in
  // every process.
  for (const Policy& p : {policies::dots_saveable, policies::dots_with_no_batch_dims_saveable,
                          policies::everything_saveable, policies::nothing_saveable}) {
    if (repr == p.jax_repr()) return p;
    if (between(repr, "<function " + p.str() + " at 0x", ">")) return p;
  }
  if (const auto set = between(repr, "SaveOnlyTheseNames(saveable_names=", ")")) {
    if (auto names = names_in(*set)) return policies::save_only_these_names_list(*std::move(names));
  }
  if (const auto set = between(repr, "SaveAnyNamesButThese(names=", ")")) {
    if (auto names = names_in(*set))
      return policies::save_any_names_but_these_list(*std::move(names));
  }
  if (const auto inside = between(repr, "save_within_budget(", ")")) {
    std::size_t bytes = 0;
    const auto [end, failed] =
        std::from_chars(inside->data(), inside->data() + inside->size(), bytes);
    const std::string_view rest = inside->substr(static_cast<std::size_t>(end - inside->data()));
    if (failed != std::errc{}) return std::nullopt;
    if (rest.empty()) return within_budget({}, bytes);
    if (const auto base = rest.starts_with(", ") ? policy_from_repr(rest.substr(2)) : std::nullopt)
      return within_budget(*base, bytes);
  }
  return std::nullopt;
}

}  // namespace reprise
