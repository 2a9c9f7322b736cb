//! Another time of day for a process, by a preloaded library; monotonic time stays.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const LIBRARY: &str = include_str!("other_clock.c");

pub struct OtherClock {
    folder: TempDir,
}

impl OtherClock {
    /// Needs a C compiler, as librdkafka does.
    pub fn new() -> Self {
        let clock = Self { folder: tempfile::tempdir().unwrap() };
        let source = clock.folder.path().join("clock.c");
        std::fs::write(&source, LIBRARY).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut command = Command::new(compiler);
        let status = command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(clock.library()).arg(source).status();
        assert!(status.unwrap().success(), "the library does not compile");
        std::fs::write(clock.file(), 0_i64.to_ne_bytes()).unwrap();
        clock
    }

    /// Sets it, also for running processes.
    ///
    /// # Panics
    /// It does not act.
    #[track_caller]
    pub fn set(&self, seconds: i64) {
        // In place: processes have mapped the file.
        let mut file = OpenOptions::new().write(true).open(self.file()).unwrap();
        file.write_all(&seconds.to_ne_bytes()).unwrap();
        let said = |environment: Vec<(String, String)>| {
            let output = Command::new("date").arg("+%s").envs(environment).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let moved = said(self.environment()) - said(Vec::new());
        assert!((moved - seconds).abs() < 60, "{moved} s instead of {seconds}");
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let pairs = [("LD_PRELOAD", self.library()), ("OTHER_CLOCK", self.file())];
        pairs.map(|(name, path)| (name.to_owned(), path.display().to_string())).to_vec()
    }

    pub fn library(&self) -> PathBuf {
        self.folder.path().join("libother_clock.so")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("seconds")
    }
}
