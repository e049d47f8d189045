// The parameters of one rank: flat buffers, one set a reduction class (holders, weight type), with weights, main
// gradients and the owned shard of masters and moments (ZeRO-1: Rajbhandari et al. 2020). All from spec::param_table.
// Thread-safety: a rank's own thread. Collectives: init, reduce and gather, all members of each class in one order.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/comm/world.h"
#include "penteract/parallel/groups.h"
#include "penteract/parallel/parameter.h"
#include "penteract/precision/precision.h"
#include "penteract/spec/param_table.h"

namespace penteract::parallel {

// A global slice of one parameter that lies row-major and contiguous in a flat buffer.
struct Segment {
  int param = -1;  // index in the table
  topology::Slice slice;
  int64_t flat_first = 0;
  int64_t count = 0;
};

// One reduction class on this rank. Offsets are equal on all members.
struct FlatBuffer {
  comm::Group group;  // the holders
  spec::WeightType type = spec::WeightType::compute;
  std::vector<Segment> segments;  // ascending, without gaps up to `used`
  int64_t used = 0;
  int64_t shard_first = 0, shard_count = 0;  // this member's part; the buffer is size · shard_count long, zero-padded
  at::Tensor weight;                         // [size·shard_count], compute or master dtype
  at::Tensor main_grad;                      // [size·shard_count], master dtype; absent with Holding::weights
  at::Tensor master, exp_avg, exp_avg_sq;    // [shard_count], master dtype; with Holding::training only

  at::Tensor grad_shard() const;  // this member's part of main_grad
};

// Parameters stored as one local matrix, joined along the last but one dim (per expert for 3-D): [q; k; v], [gate; up].
using Fusion = std::vector<std::string>;

// A piece of a parameter inside this rank's shard.
struct OwnedPiece {
  int param = -1;
  topology::Slice slice;    // global
  int64_t shard_first = 0;  // offset in the shard
  int64_t count = 0;
};

// What a store allocates.
enum class Holding : uint8_t {
  weights,            // evaluation
  weights_and_grads,  // a backward without an update
  training,           // masters and moments too
};

// Fills `out` (contiguous, the slice's elements, any floating dtype) with a slice of a parameter's global tensor.
using WeightReader =
    std::function<Status(const spec::Param& param, const topology::Slice& slice, const at::Tensor& out)>;

class ParamStore {
 public:
  ParamStore(const comm::RankContext& context, const spec::ModelSpec& model, const topology::RankGrid& grid,
             const precision::Precision& precision, const std::vector<Fusion>& fusions, Holding holding);

  const std::vector<spec::Param>& table() const { return table_; }
  std::deque<FlatBuffer>& buffers() { return buffers_; }
  const std::vector<int>& stage_of_layer() const { return stage_of_layer_; }

  // The parameter, or the fusion that begins with `names`; a fusion whose parts have different classes comes as its
  // parts. A parameter that is not held here is a CheckFailure.
  std::vector<const Parameter*> get(const Fusion& names) const;
  const Parameter* get(const std::string& name) const { return get(Fusion{name}).at(0); }

  // Masters from the counter-based generator, keyed by (seed, name): equal in every layout. Then publish_weights().
  void init_weights(uint64_t seed);  // COLLECTIVE: every class
  // Weights from elsewhere: into the masters with Holding::training (COLLECTIVE then: every class), else every rank reads
  // the slices that it stores. Errors: the reader's.
  Status load_weights(const WeightReader& read);
  // Rounds masters into weights and gathers them over each class.
  void publish_weights();  // COLLECTIVE: every class
  void zero_grads();
  // Sums main gradients over each class into the shards.
  void reduce_grads();  // COLLECTIVE: every class

  // What this rank's shard of a buffer holds, in order.
  std::vector<OwnedPiece> owned_pieces(const FlatBuffer& buffer) const;
  int64_t num_parameters() const;  // of the whole model

 private:
  void lay_out(const comm::RankContext& context, const topology::RankGrid& grid, const std::vector<Fusion>& fusions);
  void allocate(Holding holding);

  std::vector<spec::Param> table_;
  std::vector<int> stage_of_layer_;
  precision::Precision precision_;
  at::Device device_;
  std::deque<FlatBuffer> buffers_;  // ascending by their first parameter: one order on all ranks
  struct Place {                    // of a local matrix before its buffer is allocated
    std::string name;
    size_t buffer = 0;
    int64_t flat_first = 0;
    std::vector<int64_t> shape;
    bool contributes = true;
  };
  std::vector<Place> places_;
  std::deque<Parameter> parameters_;
  std::map<std::string, const Parameter*> by_name_;
};

}  // namespace penteract::parallel
