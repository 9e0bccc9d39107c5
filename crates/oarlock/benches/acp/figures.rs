//! What is measured of whom, and what the numbers say.

use std::collections::HashMap;
use std::fmt;

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Ours,
    Reference,
    /// The CLI without an adapter.
    Alone,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Figure {
    Initialize,
    New,
    FirstText,
    LaterText,
    MemoryOne,
    MemoryEight,
    DeltasWall,
    DeltasCpu,
    DeltasBytes,
    Read,
    Write,
    Edit,
    Load,
}

impl Figure {
    pub(crate) const ALL: [Figure; 13] = [
        Figure::Initialize,
        Figure::New,
        Figure::FirstText,
        Figure::LaterText,
        Figure::MemoryOne,
        Figure::MemoryEight,
        Figure::DeltasWall,
        Figure::DeltasCpu,
        Figure::DeltasBytes,
        Figure::Read,
        Figure::Write,
        Figure::Edit,
        Figure::Load,
    ];

    /// A value in the unit of the table.
    pub(crate) fn show(self, value: f64) -> String {
        use Figure::*;
        match self {
            Initialize | New | FirstText | LaterText | DeltasWall | DeltasCpu | Load => {
                let digits = if value < 0.0995 { 2 } else { 0 };
                format!("{:.digits$} ms", value * 1e3)
            }
            MemoryOne | MemoryEight => format!("{:.1} MB", value / 1e6),
            DeltasBytes | Read | Write | Edit => format!("{:.1} kB", value / 1e3),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "start to `initialize` answered",
            Self::New => "`session/new`",
            Self::FirstText => "start to the first text of the first prompt",
            Self::LaterText => "2,000 deltas: prompt to first text",
            Self::MemoryOne => "memory, 1 session after a prompt",
            Self::MemoryEight => "memory, 8 sessions after a prompt each",
            Self::DeltasWall => "2,000 deltas: prompt to end",
            Self::DeltasCpu => "2,000 deltas: CPU of the adapter",
            Self::DeltasBytes => "2,000 deltas: bytes to the client",
            Self::Read => "Read of 50 kB: bytes to the client",
            Self::Write => "Write of 102 kB: bytes to the client",
            Self::Edit => "Edit in 50 kB: bytes to the client",
            Self::Load => "`session/load` of 100 turns",
        })
    }
}

/// All values, in the order of the rounds.
#[derive(Default)]
pub(crate) struct Samples(HashMap<(Who, Figure), Vec<f64>>);

impl Samples {
    pub(crate) fn add(&mut self, who: Who, figure: Figure, value: f64) {
        self.0.entry((who, figure)).or_default().push(value);
    }

    pub(crate) fn of(&self, who: Who, figure: Figure) -> &[f64] {
        self.0.get(&(who, figure)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn median(&self, who: Who, figure: Figure) -> f64 {
        median(self.of(who, figure).iter().copied())
    }

    /// Ours to another's. Each round is compared with itself, because the machine changes its pace.
    pub(crate) fn ratio(&self, figure: Figure, other: Who) -> f64 {
        let rounds = self.of(Who::Ours, figure).iter().zip(self.of(other, figure));
        median(rounds.map(|(ours, other)| ours / other))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
