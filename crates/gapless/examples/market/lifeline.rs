//! A process's hold on its parent: it ends when the parent ends, however that dies, or lets it go.

use std::io::Read;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a process may take to end by itself.
const ENDING_TIME: Duration = Duration::from_secs(10);

/// Held while the parent keeps its end of this process's standard input open. The kernel closes it with the parent.
pub struct Lifeline {
    cut: Arc<AtomicBool>,
}

impl Lifeline {
    /// Takes standard input for it.
    pub fn hold() -> Self {
        let cut = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&cut);
        std::thread::spawn(move || {
            // Nothing is ever written; an error is as good as the end.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            // Relaxed: a flag on its own.
            flag.store(true, Ordering::Relaxed);
            std::thread::sleep(ENDING_TIME);
            exit(1);
        });
        Self { cut }
    }

    /// Whether this process is to end.
    pub fn is_cut(&self) -> bool {
        // Relaxed: nothing else is read because of it.
        self.cut.load(Ordering::Relaxed)
    }
}
