//! The table of scenarios, by subject.

mod faults;
mod permissions;
mod sessions;
mod tasks;
mod tools;
mod turns;

use crate::scenario::Scenario;

pub(crate) fn all() -> Vec<Scenario> {
    let subjects =
        [turns::all(), permissions::all(), tools::all(), tasks::all(), sessions::all(), faults::all()];
    subjects.into_iter().flatten().collect()
}
