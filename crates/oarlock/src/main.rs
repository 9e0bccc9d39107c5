//! The oarlock binary.
fn main() {}
