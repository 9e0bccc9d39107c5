//! The table of scenarios, by subject.

mod turns;

use crate::scenario::Scenario;

pub(crate) fn all() -> Vec<Scenario> {
    [turns::all()].into_iter().flatten().collect()
}
