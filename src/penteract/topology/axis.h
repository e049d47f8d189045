// The axes of the process grid. Dense grid: tp, cp, dp, pp. Expert grid: etp, ep, edp, pp. One world, two views.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace penteract::topology {

enum class Axis : uint8_t { tp, cp, dp, pp, ep, etp, edp };
inline constexpr int kNumAxes = 7;

std::string_view axis_name(Axis axis);

enum class Grid : uint8_t { dense, expert };

// A set of axes of one grid, for example {tp, cp}.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (Axis a : axes) bits_ |= 1u << static_cast<unsigned>(a);
  }
  constexpr bool has(Axis a) const { return bits_ >> static_cast<unsigned>(a) & 1u; }
  constexpr bool operator==(const AxisSet&) const = default;

 private:
  uint32_t bits_ = 0;
};

}  // namespace penteract::topology
