// A layout: axis sizes, sequence parallelism, pipeline split. Pure description: knows no model.
// Thread-safety: value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/topology/axis.h"

namespace penteract::topology {

struct Layout {
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int ep = 1, etp = 1, edp = 1;  // edp always follows: tp·cp·dp = etp·ep·edp
  bool sp = false;               // sequence parallel; a flag of tp, false where tp = 1
  int vpp = 1;                   // virtual stages a pipeline rank
  std::vector<int> split;        // layers a stage (pp·vpp numbers); empty = as even as possible
  std::string schedule = "1f1b";

  int num_ranks() const { return tp * cp * dp * pp; }
  int num_stages() const { return pp * vpp; }
  int size(Axis axis) const;
  bool operator==(const Layout&) const = default;
};

// What a user wrote: unset numbers are 0 and follow by the rules of interface.md.
struct LayoutRequest {
  int tp = 0, cp = 0, dp = 0, pp = 0, ep = 0, etp = 0, vpp = 0;
  int edp = 0;  // may be written where it says what follows
  int sp = -1;  // -1 unset, 0 off, 1 on
  std::string split;
  std::string schedule;
};

// Reads "tp=2,pp=2,sp=on,split=14|13". Errors: layout_syntax, naming the piece and the nearest word.
Result<LayoutRequest> parse_layout(const std::string& text);

// Reads "14|13"; a stage may have 0 layers. Errors: layout_syntax.
Result<std::vector<int>> parse_split(const std::string& text);

// Completes a request for a world of num_ranks ranks (0: the product of the axes): unset axes are 1, dp follows,
// sp is on where tp > 1, edp follows. Errors: layout_ranks, showing the product and layouts that fit.
// The split is parsed; "cost" is refused here with recipe_unsupported.
Result<Layout> complete_layout(const LayoutRequest& request, int num_ranks);

// "tp=2,pp=2,cp=2,dp=2,ep=4,etp=1,edp=2,sp=on": every axis, in the order a recipe writes them. parse_layout reads it
// back (edp, which follows, is checked by complete_layout).
std::string to_string(const Layout& layout);

// Layers of each stage: `split` where given, else as even as possible, earlier stages taking the remainder. A stage
// without layers passes activations on; the first one embeds and the last one computes the loss all the same.
// Errors: layout_illegal when the numbers do not add up to num_layers or are not pp·vpp many.
Result<std::vector<int>> layers_per_stage(const Layout& layout, int num_layers);

}  // namespace penteract::topology
