//! A thousand requests at once, while the service is killed and started again: each is answered, and each seat that was
//! sold by an answer is sold in the service, to one buyer.

use reqwest::{Client, StatusCode};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const REQUESTS: u32 = 1_000;
const KILLS: usize = 5;

/// Killed on drop.
struct Shop {
    child: Child,
    line: String,
}

impl Shop {
    /// Waits for the first line of the output.
    fn start(arguments: &[&str]) -> Self {
        let mut child =
            Command::new(env!("CARGO_BIN_EXE_shop")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{arguments:?} has ended: {:?}", child.wait());
        Self { child, line: line.trim_end().to_owned() }
    }

    fn serve(place: &Path) -> Self {
        Self::start(&["serve", place.to_str().unwrap()])
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // SIGKILL.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn killed_service_sells_each_seat_once() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let service = Shop::serve(&data);
    let front = Shop::start(&["http", data.to_str().unwrap(), "127.0.0.1:0"]);
    let base = format!("http://{}", front.line.strip_prefix("listening on ").unwrap());
    let client = Client::builder().timeout(Duration::from_secs(120)).build().unwrap();

    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..REQUESTS {
        // Two buyers want each seat.
        let (seat, buyer) = (number / 2 + 1, number % 2);
        let request = client.post(format!("{base}/seats/{seat}/buy/buyer-{buyer}"));
        let answered = answered.clone();
        tokio::spawn(async move {
            let status = request.send().await.map(|answer| answer.status());
            answered.send(status).unwrap();
        });
    }
    drop(answered);
    let killer = tokio::task::spawn_blocking(move || {
        let mut service = Some(service);
        for _ in 0..KILLS {
            drop(service.take());
            service = Some(Shop::serve(&data));
        }
        service
    });
    let (mut sold, mut taken) = (0, 0);
    while let Some(status) = answers.recv().await {
        match status.unwrap() {
            StatusCode::OK => sold += 1,
            StatusCode::CONFLICT => taken += 1,
            other => panic!("{other}"),
        }
    }
    let _service = killer.await.unwrap();
    assert_eq!((sold, taken), (REQUESTS / 2, REQUESTS / 2));
    let seats: serde_json::Value = client.get(format!("{base}/seats")).send().await.unwrap().json().await.unwrap();
    assert_eq!(seats, serde_json::json!({ "free": 2_000 - sold, "held": 0, "sold": sold }));
}
