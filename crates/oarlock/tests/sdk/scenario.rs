//! A scenario: what the model says, what the driver does, what must come out, and in which cells.

use std::fmt;

use oarlock_testkit::cli::Program;
use oarlock_testkit::model::Script;
use serde_json::Value;

use crate::expect;
use crate::plan::Session;

/// Whose SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sdk {
    Ours,
    Python,
    TypeScript,
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) sdk: Sdk,
    pub(crate) program: Program,
}

impl Cell {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let programs = [Program::Scripted, Program::Newest, Program::Oldest];
        let sdks = [Sdk::Ours, Sdk::Python, Sdk::TypeScript];
        programs.into_iter().flat_map(move |program| sdks.map(|sdk| Self { sdk, program }))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sdk = match self.sdk {
            Sdk::Ours => "ours",
            Sdk::Python => "python",
            Sdk::TypeScript => "typescript",
        };
        write!(f, "{sdk}-{}", self.program.version().unwrap_or("scripted"))
    }
}

/// Some cells.
pub(crate) type Cells = fn(Cell) -> bool;

pub(crate) const PYTHON: Cells = |cell| cell.sdk == Sdk::Python;
pub(crate) const TYPESCRIPT: Cells = |cell| cell.sdk == Sdk::TypeScript;
pub(crate) const OLDEST: Cells = |cell| cell.program == Program::Oldest;
pub(crate) const SCRIPTED: Cells = |cell| cell.program == Program::Scripted;

/// In which cells a scenario runs every time; a full run has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All SDKs on the scripted CLI, and ours on the newest.
    Usual,
    /// Also the official SDKs on the newest: the fixed subset that shows each kind of traffic.
    Core,
    /// All cells: the fixed tenth for the oldest CLI.
    All,
}

/// A scenario, put together by its methods.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    reach: Reach,
    /// What the model says, by the names that prompts carry as `{{script NAME}}`. Only for real CLIs.
    pub(crate) scripts: Vec<(&'static str, Script)>,
    /// What the scripted CLI plays: a file in `scripts`, without its extension; by default of the same name.
    pub(crate) script: &'static str,
    /// Files in the working directory at the start, and what environment there is on top of the usual.
    pub(crate) given: Vec<(&'static str, &'static str)>,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) sessions: Vec<Session>,
    /// A pattern for each session's summary.
    expectations: Vec<Value>,
    exceptions: Vec<(Cells, &'static str, Value)>,
    /// Whether all sessions must have the same id, or all different ones.
    pub(crate) same_session: Option<bool>,
    /// Files after the end; none where there must be no such file. Only for real CLIs.
    pub(crate) files: Vec<(&'static str, Option<&'static str>)>,
    /// What the model must have been told. Only for real CLIs.
    pub(crate) told: Vec<&'static str>,
}

impl Scenario {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            reach: Reach::Usual,
            scripts: Vec::new(),
            script: name,
            given: Vec::new(),
            environment: Vec::new(),
            sessions: Vec::new(),
            expectations: Vec::new(),
            exceptions: Vec::new(),
            same_session: None,
            files: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(crate) fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    pub(crate) fn model(mut self, name: &'static str, script: Script) -> Self {
        self.scripts.push((name, script));
        self
    }

    pub(crate) fn script(mut self, file: &'static str) -> Self {
        self.script = file;
        self
    }

    pub(crate) fn given(mut self, file: &'static str, contents: &'static str) -> Self {
        self.given.push((file, contents));
        self
    }

    pub(crate) fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// A session, and what must come out of it. Whatever the pattern says, no driver may be stuck, and where it
    /// names no error there must be none.
    pub(crate) fn session(mut self, session: Session, expectation: Value) -> Self {
        let mut pattern = serde_json::json!({"stuck": null, "error": null});
        expect::merge(&mut pattern, expectation);
        self.sessions.push(session);
        self.expectations.push(pattern);
        self
    }

    /// In these cells the first session's pattern differs, for the reason given.
    pub(crate) fn except(mut self, cells: Cells, why: &'static str, patch: Value) -> Self {
        self.exceptions.push((cells, why, patch));
        self
    }

    pub(crate) fn same_session(mut self, same: bool) -> Self {
        self.same_session = Some(same);
        self
    }

    pub(crate) fn file(mut self, name: &'static str, contents: Option<&'static str>) -> Self {
        self.files.push((name, contents));
        self
    }

    pub(crate) fn told(mut self, text: &'static str) -> Self {
        self.told.push(text);
        self
    }

    /// What must come out in this cell: a list, one for each session.
    pub(crate) fn expectation(&self, cell: Cell) -> Value {
        let mut expectations = self.expectations.clone();
        for (cells, _, patch) in &self.exceptions {
            if cells(cell) {
                expect::merge(&mut expectations[0], patch.clone());
            }
        }
        Value::Array(expectations)
    }

    /// Why that is not the same as in all cells.
    pub(crate) fn reasons(&self, cell: Cell) -> Vec<&'static str> {
        self.exceptions.iter().filter(|(cells, ..)| cells(cell)).map(|(_, why, _)| *why).collect()
    }

    pub(crate) fn runs(&self, cell: Cell, full: bool) -> bool {
        let usually = match (cell.program, cell.sdk) {
            (Program::Scripted, _) | (Program::Newest, Sdk::Ours) => true,
            (Program::Newest, _) => self.reach != Reach::Usual,
            (Program::Oldest, _) => self.reach == Reach::All,
        };
        full || usually
    }
}
