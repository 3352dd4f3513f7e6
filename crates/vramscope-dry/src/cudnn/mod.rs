//! cuDNN: plans and workspaces by the own library of the user, or by a model.
