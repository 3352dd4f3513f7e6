//! cuDNN: plans and workspaces by the own library of the user, or by a model.
//!
//! | file | functions |
//! |---|---|
//! | `backend` | descriptors of operation graphs, heuristics and plans: to `real`, or to `model` |
//! | `legacy` | handles, versions, descriptors of tensors and filters |
//! | `convolution` | algorithms of convolutions, as cuDNN 8 has them |
//! | `rnn`, `rnn_v6` | recurrent networks and dropout: their sizes by formula (`network`) |
//! | `norm` | batch normalization, CTC loss |

mod backend;
mod convolution;
mod legacy;
mod model;
mod names;
mod network;
mod norm;
mod real;
mod records;
mod rnn;
mod rnn_v6;
mod status;
mod tensor;
#[cfg(test)]
mod tests;
