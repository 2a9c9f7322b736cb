//! [`OtherClock`]: another time of day for a process, by libfaketime. Monotonic time stays, as on a machine whose clock is set.

use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A clock that differs from that of this machine by a number of seconds, which can change while processes run.
pub struct OtherClock {
    library: PathBuf,
    folder: TempDir,
}

impl OtherClock {
    /// One that goes right so far. `None`, visibly, where libfaketime is missing.
    pub fn new() -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
        let libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
        let Some(library) = libraries.into_iter().find(|library| library.is_file()) else {
            println!("SKIPPED: there is no libfaketime: apt install faketime");
            return None;
        };
        let clock = Self { library, folder: tempfile::tempdir().unwrap() };
        clock.set(0);
        Some(clock)
    }

    /// Sets it, for processes that run, too.
    ///
    /// # Panics
    /// It does not act.
    #[track_caller]
    pub fn set(&self, seconds: i64) {
        let (file, next) = (self.file(), self.folder.path().join("next"));
        std::fs::write(&next, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(next, file).unwrap();
        let said = |environment: Vec<(String, String)>| {
            let output = Command::new("date").arg("+%s").envs(environment).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let moved = said(self.environment()) - said(Vec::new());
        assert!((moved - seconds).abs() < 60, "{moved} s instead of {seconds}");
    }

    /// Variables for a process.
    pub fn environment(&self) -> Vec<(String, String)> {
        let pairs = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            // Read for each time of day.
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            // A process that is killed would leave it behind.
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }
}
