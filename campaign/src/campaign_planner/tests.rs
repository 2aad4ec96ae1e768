//! The planner against a small model of the operator and of the cluster: whole campaigns, from the manifest to the
//! answers, with everything that may go wrong on the way.

mod bounds;
mod lifecycle;
mod running;
mod world;
