//! Everything that decides: matrix, order, budgets, the planners, validity, inference and the report. Pure: no
//! input or output, no clock, and no randomness but a seed, so that any decision can be recomputed and tested.

pub mod blocks;
pub mod budget;
pub mod campaign_planner;
pub mod histogram;
pub mod inference;
pub mod matrix;
pub mod naming;
pub mod order;
pub mod report;
pub mod run_planner;
pub mod target_planner;
pub mod validity;
