// A split at one stage that names fewer layers than the model has built a shorter model elsewhere.
#include <gtest/gtest.h>

#include "penteract/topology/layout.h"

namespace penteract::topology {
namespace {

TEST(OneStageSplit, MustNameAllLayers) {
  Layout layout;
  layout.split = {3};
  EXPECT_FALSE(layers_per_stage(layout, 4).ok());
  layout.split = {4};
  EXPECT_EQ(*layers_per_stage(layout, 4), std::vector<int>{4});
}

}  // namespace
}  // namespace penteract::topology
