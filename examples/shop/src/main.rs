//! Sells the seats of a hall: `shop serve data/` is the service, `shop http data/ 127.0.0.1:8080` its web front. Either
//! may be killed at any time and started again: no ticket is lost, and none is sold twice.

#![forbid(unsafe_code)]

mod hall;
mod http;

use gapless::{Client, Host};
use hall::Hall;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", place] => {
            let host = Host::at(place)?.service(Hall::default()).start()?;
            println!("serving {place}");
            tokio::signal::ctrl_c().await?;
            host.stop()?;
        }
        ["http", place, address] => {
            let client = Client::connect(place).sessions(16).await?;
            let listener = tokio::net::TcpListener::bind(address).await?;
            println!("listening on {}", listener.local_addr()?);
            axum::serve(listener, http::routes(client))
                .with_graceful_shutdown(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
                .await?;
        }
        _ => return Err("`shop serve DIRECTORY` or `shop http DIRECTORY ADDRESS` is expected".into()),
    }
    Ok(())
}
