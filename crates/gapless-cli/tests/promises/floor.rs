#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ended with its test, passed or failed.
pub struct Floor(tempfile::TempDir);

impl Floor {
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("floor.toml"), text).unwrap();
        Self(folder)
    }

    pub fn of_example(package: &str, folder: &str, files: &[&str], programs: &[&str]) -> Self {
        let examples = programs_folder().join("examples");
        let are_built = programs.iter().all(|name| examples.join(name).exists());
        assert!(are_built, "`cargo build -p {package} --examples` comes first; `cargo test --workspace` does it");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let this = Self(tempfile::tempdir().unwrap());
        for file in files {
            std::fs::copy(example.join(file), this.path().join(file)).unwrap();
        }
        this
    }

    pub fn run(&self, words: &[&str]) -> ProgramOutput {
        self.with_examples(&mut gapless(self.path(), words)).output().unwrap().into()
    }

    pub fn with_examples<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let programs = programs_folder();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let paths: Vec<PathBuf> =
            [programs.join("examples"), programs].into_iter().chain(std::env::split_paths(&others)).collect();
        command.env("PATH", std::env::join_paths(paths).unwrap()).current_dir(self.path())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.run(&["ps", "--json"]).shown()).unwrap()
    }

    pub fn instances(&self) -> Vec<Value> {
        self.status()["instances"].as_array().unwrap().clone()
    }

    pub fn states(&self) -> Vec<(String, String)> {
        let text = |instance: &Value, name: &str| instance[name].as_str().unwrap().to_owned();
        self.instances().iter().map(|instance| (text(instance, "instance"), text(instance, "state"))).collect()
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.run(&["down"]);
    }
}

fn programs_folder() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_gapless")).parent().unwrap().to_owned()
}
