// Linen's Sequential and PReLU.
//
//   rp::nn::Sequential model({rp::nn::Dense(4), rp::nn::relu, rp::nn::Dense(2)});   // layers_0, layers_2
#pragma once

#include "reprise/nn_module.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace reprise::nn {

// A step of Sequential: a module, or a function from Array to Array.
class Layer {
 public:
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Layer>) Layer(T&& layer)  // NOLINT: implicit by design
      : held_(std::make_unique<Held<std::decay_t<T>>>(std::forward<T>(layer))) {}
  Layer(const Layer& other) : held_(other.held_->clone()) {}
  Layer(Layer&&) = default;
  Layer& operator=(const Layer& other) {
    held_ = other.held_->clone();
    return *this;
  }
  Layer& operator=(Layer&&) = default;
  Array operator()(const Array& x) { return held_->call(x); }
  ModuleBase* module() { return held_->module(); }  // null for a function

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> clone() const = 0;
    virtual Array call(const Array& x) = 0;
    virtual ModuleBase* module() = 0;
  };
  template <class T>
  struct Held : Base {
    T layer;
    template <class U>
    explicit Held(U&& given) : layer(std::forward<U>(given)) {}
    std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(layer); }
    Array call(const Array& x) override { return layer(x); }
    ModuleBase* module() override {
      if constexpr (std::is_base_of_v<ModuleBase, T>) {
        return &layer;
      } else {
        return nullptr;
      }
    }
  };
  std::unique_ptr<Base> held_;
};

// Applies layers in order. Modules among them are its children layers_0, layers_1, ... by their
// places; inside another module's call they were made there, and are that module's children.
class Sequential : public Module<Sequential> {
 public:
  explicit Sequential(std::vector<Layer> layers, std::string name = {},
                      Location at = Location::current());
  Array call(Array x);

 protected:
  void visit_submodules(const detail::SubmoduleVisitor& visit) override;

 private:
  std::vector<Layer> layers_;
};

// Fields of PReLU.
struct PReLUFields {
  Dtype param_dtype = float32;
  double negative_slope_init = 0.01;
  std::string name = {};
};
// x where x >= 0, else negative_slope * x. Parameter: negative_slope ().
class PReLU : public Module<PReLU> {
 public:
  explicit PReLU(PReLUFields fields = {}, Location at = Location::current());
  Array call(Array x);

 private:
  PReLUFields fields_;
};

}  // namespace reprise::nn
#pragma GCC visibility pop
