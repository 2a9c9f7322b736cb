//! The bar on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

#[derive(Debug, Clone)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(length: u64, label: &str, visible: bool) -> Self {
        // Redrawn rarely: a drawing thread takes its time from the spinning ones.
        let target = if visible { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:32} [{bar:32}] {percent:>3} % {msg} {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(label.to_owned());
        Self(bar)
    }

    pub(super) fn set_label(&self, label: &str) {
        self.0.set_prefix(label.to_owned());
    }

    pub(super) fn set_position(&self, position: u64) {
        self.0.set_position(position);
    }

    pub(super) fn position(&self) -> u64 {
        self.0.position()
    }

    pub(super) fn line(&self, text: &str) {
        self.0.println(text);
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }

    #[cfg(test)]
    pub(super) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }
}
