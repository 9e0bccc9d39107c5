//! The reducer: recordings as snapshots, rules one by one, and properties.

mod cases;
mod model;
mod outline;
mod properties;
mod replay;
mod traces;
mod turns;
