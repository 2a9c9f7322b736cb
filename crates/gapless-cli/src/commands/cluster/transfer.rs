//! `gapless cluster transfer`.

use super::member::Member;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless::cluster::member::control::{Answer, Request};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    member: Member,
    /// The member that is to lead
    #[arg(long, value_name = "MEMBER")]
    to: u64,
}

/// So long it may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let begin = Instant::now();
    match arguments.member.ask(&Request::Transfer { to: arguments.to })? {
        Answer::Begun => {}
        Answer::Refused(reason) => return Err(reason.into()),
        Answer::Status(_) | Answer::Snapshot { .. } => return Err("the member answers something else".into()),
    }
    loop {
        let report = arguments.member.status()?;
        if report.leader == Some(arguments.to) {
            let term = report.term;
            return print(&format!("member {} leads in term {term}\n", arguments.to));
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("member {} does not lead after {PATIENCE:?}; it may lag too far", arguments.to).into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
