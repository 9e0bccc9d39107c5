//! Where the CLI keeps the transcripts of a directory.

use std::path::{Path, PathBuf};

/// The longest name that the CLI gives a project's folder before it adds a hash.
const MAX_NAME: usize = 200;

/// A directory that `claude` was started in, and the name of the folder with its transcripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    path: PathBuf,
    name: String,
}

impl Project {
    /// The project of a directory. Links are resolved, because the CLI resolves them.
    #[must_use]
    pub fn of(cwd: impl AsRef<Path>) -> Self {
        let cwd = cwd.as_ref();
        let path =
            cwd.canonicalize().or_else(|_| std::path::absolute(cwd)).unwrap_or_else(|_| cwd.to_owned());
        let path = plain(path);
        Self { name: folder_name(&path.to_string_lossy()), path }
    }

    /// The directory, as the CLI sees it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its folder below `projects`; also the project's name in a [`Store`](crate::store::Store).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The projects of all work trees of the repository that the directory is in, itself among them.
    #[must_use]
    pub fn worktrees(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        for root in worktree_roots(&self.path) {
            let project = Self::of(root);
            if !all.contains(&project) {
                all.push(project);
            }
        }
        all
    }

    /// Is this a folder of the project? A name with a hash fits when all before the hash does: not every program hashes
    /// in the same way.
    pub(super) fn owns(&self, folder: &str) -> bool {
        let prefix = || self.name.get(..=MAX_NAME).filter(|_| self.name.len() > MAX_NAME);
        folder == self.name || prefix().is_some_and(|prefix| folder.starts_with(prefix))
    }
}

/// On Windows, the path without the mark that resolving adds.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(rest) if cfg!(windows) && !rest.starts_with("UNC") => rest.into(),
        _ => path,
    }
}

/// The name of the folder for a directory's transcripts.
///
/// The CLI counts in UTF-16 units, as JavaScript does: each one that is no ASCII letter or digit becomes `-`, so an emoji
/// makes two. Beyond 200 units a hash of the whole path is added.
///
/// ```
/// # use oarlock_agent::history::folder_name;
/// assert_eq!(folder_name("/home/u/my_app"), "-home-u-my-app");
/// ```
#[must_use]
pub fn folder_name(path: &str) -> String {
    let plain = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    let name: String = path.encode_utf16().take(MAX_NAME + 1).map(plain).collect();
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = path.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    format!("{}-{}", &name[..MAX_NAME], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The roots of all work trees of the repository around a directory, from git's own files.
fn worktree_roots(cwd: &Path) -> Vec<PathBuf> {
    let Some(git) = cwd.ancestors().map(|dir| dir.join(".git")).find(|git| git.exists()) else {
        return Vec::new();
    };
    let common = common_dir(&git);
    let main = common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned);
    let linked = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    // Each names the `.git` file at the root of its work tree.
    let linked = linked.filter_map(|tree| {
        let path = read_path(&tree.path().join("gitdir"), "")?;
        tree.path().join(path).parent().map(Path::to_owned)
    });
    main.into_iter().chain(linked).collect()
}

/// The directory with what all work trees share.
fn common_dir(git: &Path) -> PathBuf {
    let Some(own) = read_path(git, "gitdir: ") else { return git.to_owned() };
    let own = git.parent().unwrap_or(git).join(own);
    let common = read_path(&own.join("commondir"), "").map(|common| own.join(common));
    common.and_then(|common| common.canonicalize().ok()).unwrap_or(own)
}

/// A path in a file of one line.
fn read_path(file: &Path, label: &str) -> Option<PathBuf> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.lines().next()?.strip_prefix(label)?.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cli_s_names_are_found() {
        // Seen with 2.1.197 and 2.1.325.
        assert_eq!(folder_name("/w/plain_dir.x"), "-w-plain-dir-x");
        assert_eq!(folder_name("/w/emo\u{1f600}ji"), "-w-emo--ji");
        assert_eq!(folder_name("/w/cafe\u{301}"), "-w-cafe-", "not composed first");
        assert_eq!(folder_name("/w/Straße ü"), "-w-Stra-e--");
        // The same rule, as other code computes it: the hash is over UTF-16 units of the path as it is.
        let long =
            format!("{}/me/w/long{}/{}{}\u{1f600}z", "/home", "x".repeat(100), "é".repeat(40), "y".repeat(60));
        assert!(folder_name(&long).ends_with("yyy-qaoa0e"), "{}", folder_name(&long));
    }

    #[test]
    fn a_link_leads_to_the_project_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::create_dir(&target).unwrap();
        #[cfg(unix)]
        {
            let link = dir.path().join("link");
            std::os::unix::fs::symlink(&target, &link).unwrap();
            assert_eq!(Project::of(&link), Project::of(&target));
        }
        assert_ne!(Project::of(dir.path()), Project::of(&target));
    }

    #[test]
    fn work_trees_of_a_repository_are_found_from_each_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (main, side) = (root.join("main"), root.join("side"));
        let entry = main.join(".git/worktrees/side");
        std::fs::create_dir_all(&entry).unwrap();
        std::fs::create_dir_all(main.join("src")).unwrap();
        std::fs::create_dir_all(&side).unwrap();
        std::fs::write(side.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        std::fs::write(entry.join("gitdir"), format!("{}\n", side.join(".git").display())).unwrap();
        std::fs::write(entry.join("commondir"), "../..\n").unwrap();
        let names = |cwd: &Path| {
            let mut names: Vec<_> =
                Project::of(cwd).worktrees().iter().map(|project| project.path().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&main), [main.clone(), side.clone()]);
        assert_eq!(names(&side), [main.clone(), side.clone()]);
        assert_eq!(names(&main.join("src")), [main.clone(), main.join("src"), side]);
        assert_eq!(names(&root), [root], "no repository, no work trees");
    }

    #[test]
    fn folders_of_a_long_path_are_known_by_all_before_the_hash() {
        let long = Project { path: "/".into(), name: format!("{}-abc", "a".repeat(200)) };
        assert!(long.owns(&format!("{}-xyz", "a".repeat(200))));
        assert!(!long.owns(&"a".repeat(200)));
        let short = Project { path: "/".into(), name: "-w-app".into() };
        assert!(short.owns("-w-app") && !short.owns("-w-app-2"));
    }

    proptest! {
        #[test]
        fn a_name_is_short_and_plain(path in "\\PC{0,400}") {
            let name = folder_name(&path);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
            prop_assert!(name.len() <= MAX_NAME + 8);
            let units = path.encode_utf16().count();
            prop_assert_eq!(name.len().min(MAX_NAME), units.min(MAX_NAME));
            prop_assert_eq!(name.len() > MAX_NAME, units > MAX_NAME);
        }

        #[test]
        fn a_short_plain_path_keeps_its_letters(path in "(/[a-z0-9]{1,9}){1,12}") {
            prop_assert_eq!(folder_name(&path).replace('-', "/"), path);
        }

        #[test]
        fn base36_is_what_parsing_undoes(number: u32) {
            prop_assert_eq!(u32::from_str_radix(&base36(number), 36).unwrap(), number);
        }
    }
}
