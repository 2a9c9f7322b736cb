use std::io::Read;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ENDING_TIME: Duration = Duration::from_secs(10);

/// Held while the parent keeps its end of this process's standard input open; the kernel closes it with the parent.
pub struct Lifeline {
    cut: Arc<AtomicBool>,
}

impl Lifeline {
    pub fn hold() -> Self {
        let cut = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&cut);
        std::thread::spawn(move || {
            // No byte is ever written; an error also counts as the end.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            flag.store(true, Ordering::Relaxed);
            std::thread::sleep(ENDING_TIME);
            exit(1);
        });
        Self { cut }
    }

    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
}
