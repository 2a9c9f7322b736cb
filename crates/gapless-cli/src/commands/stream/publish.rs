//! `gapless stream publish`.

use super::input::InputLines;
use super::location::NodeLocation;
use super::output::note;
use super::publishing::{LinePublisher, PublishArguments, PublishTurn};
use super::reading::silent;
use super::waiting::WaitMonitor;
use crate::commands::{CommandResult, interrupt};
use clap::Args;
use gapless_client::node::{NodeEvent, NodeState, Start, StreamNode};
use gapless_stream::options::EventStreamOptions;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    /// File of lines; - is standard input [default: standard input]
    file: Option<PathBuf>,
    #[command(flatten)]
    location: NodeLocation,
    #[command(flatten)]
    publish: PublishArguments,
    /// Maximum lines per second
    #[arg(long, value_name = "LINES", value_parser = rate)]
    rate: Option<f64>,
    /// Seconds without an acknowledgement before giving up; halts of the stream do not count
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.001..=1e9).contains(rate));
    rate.ok_or_else(|| "a number of lines from 0.001 is expected".to_owned())
}

const PAUSE: Duration = Duration::from_millis(1);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const FRAMES_PER_POLL: usize = 1024;
pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let mut config = arguments.location.config()?;
    // The sequencer reports the number it expects.
    config.node.start = Start::Live;
    let longest = EventStreamOptions::from_config(&config)?.message_length_max;
    let lines = InputLines::open(arguments.file.as_deref(), arguments.publish.line_length_max(longest))?;
    let mut publishing = LinePublisher::new(&arguments.publish, lines, arguments.rate);
    let mut node = StreamNode::new(config.link()?, config.node_options(arguments.publish.token()));
    let interrupted = interrupt()?;
    let progress = ProgressBar::new_spinner();
    let (patience, begun) = (Duration::from_secs(arguments.timeout), Instant::now());
    let (mut last_progress, mut shown) = (begun, begun);
    let (mut is_halted, mut was_connected) = (false, false);
    let mut waits = WaitMonitor::new();
    let outcome = loop {
        if interrupted.load(Ordering::Relaxed) {
            break Err("interrupted".into());
        }
        let turn = match publishing.turn(&mut node) {
            Ok(turn) => turn,
            Err(error) => break Err(error),
        };
        let waiting = node.in_flight();
        let polled = node.poll(FRAMES_PER_POLL, |event| {
            note(&event);
            match event {
                NodeEvent::Halted { reason, .. } => {
                    is_halted = true;
                    progress.suspend(|| crate::commands::to_stderr!("note: the stream is halted: {reason}; waiting"));
                }
                NodeEvent::Resumed { .. } => is_halted = false,
                _ => {}
            }
        });
        let count = match polled {
            Ok(count) => count,
            Err(error) => break Err(error.into()),
        };
        was_connected |= node.state() != NodeState::Connecting;
        if let Some(line) = waits.check(&node) {
            progress.suspend(|| crate::commands::to_stderr!("{line}"));
        }
        if turn == PublishTurn::Done && node.in_flight() == 0 {
            break Ok(());
        }
        let is_waiting = node.in_flight() > 0 || turn == PublishTurn::Full;
        if !is_waiting || is_halted || node.in_flight() < waiting {
            last_progress = Instant::now();
        } else if last_progress.elapsed() > patience {
            let nothing = || format!("nothing has come back for {} s", patience.as_secs());
            break Err(if was_connected { nothing() } else { silent(&node, patience) }.into());
        }
        if shown.elapsed() > PROGRESS_INTERVAL {
            shown = Instant::now();
            progress.set_message(format!("{} published, {} on their way", publishing.published, node.in_flight()));
            progress.tick();
        }
        if count == 0 && turn != PublishTurn::Busy {
            if is_waiting { node.wait(PAUSE)? } else { publishing.wait(PAUSE * 10)? }
        }
    };
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    if outcome.is_ok() || is_interrupted {
        publishing.finish(&mut node, is_halted);
    }
    progress.finish_and_clear();
    let (published, seconds) = (publishing.published, begun.elapsed().as_secs_f64());
    let passed_over = match publishing.passed_over {
        0 => String::new(),
        count => format!(", {count} were there already"),
    };
    match outcome {
        Ok(()) => {
            let rate = published as f64 / seconds.max(1e-9);
            crate::commands::to_stderr!(
                "{published} lines published and acknowledged in {seconds:.3} s ({rate:.0}/s){passed_over}"
            );
            Ok(())
        }
        Err(error) => {
            let error: Box<dyn std::error::Error> = error;
            let missing = node.in_flight();
            Err(format!("{error}; {published} lines published, {missing} of them not acknowledged{passed_over}").into())
        }
    }
}
