//! `gapless stream node`.

use super::input::InputLines;
use super::location::NodeLocation;
use super::output::{FormArguments, note};
use super::publishing::{LinePublisher, PublishArguments, PublishTurn};
use super::reading;
use super::reading::TimeoutArguments;
use super::waiting::WaitMonitor;
use crate::commands::pipe::is_reader_gone;
use crate::commands::{CommandResult, interrupt};
use clap::Args;
use gapless_client::node::{NodeEvent, NodeState, Start, StreamNode};
use gapless_stream::options::EventStreamOptions;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: NodeLocation,
    #[command(flatten)]
    publish: PublishArguments,
    #[command(flatten)]
    form: FormArguments,
    /// Position to read from: first, live, or a sequence [default: that of the file, else first]
    #[arg(long, value_name = "WHERE", value_parser = reading::start)]
    from: Option<Start>,
    #[command(flatten)]
    patience: TimeoutArguments,
}

const FRAMES_PER_POLL: usize = 1024;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let mut config = arguments.location.config()?;
    config.node.start = arguments.from.unwrap_or(config.node.start);
    let longest = EventStreamOptions::from_config(&config)?.message_length_max;
    let lines = InputLines::open(None, arguments.publish.line_length_max(longest))?;
    let mut publishing = LinePublisher::new(&arguments.publish, lines, None);
    let mut node = StreamNode::new(config.link()?, config.node_options(arguments.publish.token()));
    let mut output = arguments.form.output();
    let (interrupted, begun) = (interrupt()?, Instant::now());
    let mut waits = WaitMonitor::new();
    let (mut was_connected, mut is_halted) = (false, false);
    while !interrupted.load(Ordering::Relaxed) {
        let turn = publishing.turn(&mut node)?;
        let polled = node.poll(FRAMES_PER_POLL, |event| {
            note(&event);
            match event {
                NodeEvent::Halted { .. } => is_halted = true,
                NodeEvent::Resumed { .. } => is_halted = false,
                _ => {}
            }
            output.event(&event);
        });
        let is_read = output.flush()?;
        let count = polled?;
        let is_over = turn == PublishTurn::Done && node.in_flight() == 0 && node.state() == NodeState::Live;
        if !is_read || is_over {
            break;
        }
        was_connected |= node.state() != NodeState::Connecting;
        waits.print_due(&node);
        if !was_connected {
            arguments.patience.check(&node, begun)?;
        }
        if count == 0 && turn != PublishTurn::Busy {
            node.wait(PAUSE)?;
            if is_reader_gone(Duration::ZERO)? {
                break;
            }
        }
    }
    publishing.finish(&mut node, is_halted);
    match node.in_flight() {
        0 => Ok(()),
        missing => Err(format!("{missing} lines have not come back").into()),
    }
}
