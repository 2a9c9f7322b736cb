//! The two builds: programs that are there, or git revisions that are built side by side.

use super::{failed, started};
use crate::{BenchError, Result};
use gapless_wire::checksum::crc32c;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Build {
    pub name: String,
    pub program: PathBuf,
}

/// Path in the repository; a build stays for the next time.
const BUILDS: &str = "target/compare";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuildSource {
    Program(Build),
    Revision { given: String, commit: String, root: PathBuf },
}

impl BuildSource {
    /// `given` is a file, or else a revision of the current directory's repository.
    pub(super) fn find(given: &str) -> Result<Self> {
        let path = Path::new(given);
        if path.is_file() {
            let program = std::path::absolute(path).map_err(|source| BenchError::io("find", path, source))?;
            return Ok(Self::Program(Build { name: given.to_owned(), program }));
        }
        let neither = |reason: String| {
            BenchError::Option(format!("{given:?} is neither the path of a program nor a git revision: {reason}"))
        };
        if path.exists() {
            return Err(neither("it is a directory".to_owned()));
        }
        // A revision that begins with - would be an option of git's.
        let commit = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{given}^{{commit}}")])
            .map_err(neither)?;
        let root = git(&["rev-parse", "--show-toplevel"]).map_err(neither)?;
        Ok(Self::Revision { given: given.to_owned(), commit, root: root.into() })
    }

    pub(super) fn build(self, interrupted: &AtomicBool) -> Result<Build> {
        match self {
            Self::Program(build) => Ok(build),
            Self::Revision { given, commit, root } => build(&given, &commit, &root, interrupted),
        }
    }
}

fn git(arguments: &[&str]) -> std::result::Result<String, String> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("git cannot be run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false if output.stderr.is_empty() => Err("there is none of that name".to_owned()),
        false => Err(text(&output.stderr)),
    }
}

/// Inputs besides the commit that determine the program: compiler and Cargo options.
fn surroundings(root: &Path) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").current_dir(root).stdin(Stdio::null()).output();
    let version = output.map_err(|source| BenchError::system("run rustc", source))?.stdout;
    let decides = |name: &str| {
        let of_cargo = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_"].iter().any(|start| name.starts_with(start));
        (of_cargo || name == "RUSTFLAGS" || name == "CARGO_ENCODED_RUSTFLAGS") && name != "CARGO_TARGET_DIR"
    };
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| decides(name))
        .collect();
    let files = [".cargo/config.toml", ".cargo/config"].map(|file| std::fs::read(root.join(file)).unwrap_or_default());
    Ok(format!("{} {variables:?} {files:?}", String::from_utf8_lossy(&version)))
}

fn build(given: &str, commit: &str, root: &Path, interrupted: &AtomicBool) -> Result<Build> {
    let short = commit.get(..12).unwrap_or(commit);
    let name = if commit.starts_with(given) { short.to_owned() } else { format!("{given} ({short})") };
    let surroundings = crc32c(surroundings(root)?.as_bytes());
    let home = root.join(BUILDS).join(format!("{short}-{surroundings:08x}"));
    let program = home.join("gapless");
    if program.is_file() {
        return Ok(Build { name, program });
    }
    let (tree, target) = (home.join("tree"), home.join("target"));
    std::fs::create_dir_all(&home).map_err(|source| BenchError::io("create", &home, source))?;
    let path = home.join("lock");
    let lock = File::create(&path).map_err(|source| BenchError::io("create", &path, source))?;
    lock.lock().map_err(|source| BenchError::io("lock", &path, source))?;
    if program.is_file() {
        return Ok(Build { name, program });
    }
    // A closed stderr is no error here.
    let _ = writeln!(std::io::stderr(), "building {name} in {}", home.display());
    // One of a build that was cut short.
    let _ = git(&["worktree", "remove", "--force", &tree.to_string_lossy()]);
    git(&["worktree", "add", "--force", "--detach", &tree.to_string_lossy(), commit]).map_err(failed)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--locked", "--package", "gapless-cli", "--target-dir"]).arg(&target);
    // Another target would move the program.
    command.env_remove("CARGO_BUILD_TARGET").current_dir(&tree).stdin(Stdio::null()).stdout(Stdio::null());
    let built = started::output(&mut command, interrupted).map_err(|source| BenchError::system("run cargo", source));
    // Git's record of the worktree must not outlive it, whether the build succeeded or not.
    let _ = git(&["worktree", "remove", "--force", &tree.to_string_lossy()]);
    let status = built?.status;
    if interrupted.load(Ordering::Relaxed) {
        // Keeps the compiled artifacts for the next build.
        return Err(failed(format!("interrupted while {name} was built")));
    }
    if !status.success() {
        let _ = std::fs::remove_dir_all(&target);
        return Err(failed(format!("{name} could not be built: cargo ended with {status}")));
    }
    let built = target.join("release/gapless");
    std::fs::rename(&built, &program).map_err(|source| BenchError::io("move", &built, source))?;
    std::fs::remove_dir_all(&target).map_err(|source| BenchError::io("remove", &target, source))?;
    Ok(Build { name, program })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let given = file.path().to_str().unwrap();
        let program = Build { name: given.to_owned(), program: file.path().to_owned() };
        assert_eq!(BuildSource::find(given).unwrap(), BuildSource::Program(program));
    }

    #[test]
    fn unknown_build_is_refused_by_name() {
        for given in ["no-such-revision-or-file", "/", "--help", ""] {
            let error = BuildSource::find(given).unwrap_err().to_string();
            assert!(error.contains(&format!("{given:?} is neither")), "{error}");
        }
    }
}
