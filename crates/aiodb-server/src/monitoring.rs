//! The second port: figures for Prometheus, whether the server lives, and whether it is ready.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::command::Server;
use crate::figures;

/// Connections at a time. Others wait in the system's queue.
const MOST_CONNECTIONS: usize = 64;

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection lasts, whatever it does.
const LIFE: Duration = Duration::from_secs(60);

/// Answers until the task is ended.
pub(crate) async fn monitor(server: Arc<Server>, listener: TcpListener, ending: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes the semaphore");
        let Ok((stream, _)) = listener.accept().await else {
            // No file descriptor is left, most likely: others must go first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (server, ending) = (Arc::clone(&server), ending.clone());
        tokio::spawn(async move {
            // A client that goes away, or sends something else, is no failure of the server.
            let _ = tokio::time::timeout(LIFE, answer_all(server, stream, ending)).await;
            drop(place);
        });
    }
}

async fn answer_all(server: Arc<Server>, stream: TcpStream, ending: watch::Receiver<bool>) -> hyper::Result<()> {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = respond(&server, &request, *ending.borrow());
        async { Ok::<_, Infallible>(response) }
    });
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16 << 10);
    connection.serve_connection(TokioIo::new(stream), answer).await
}

fn respond(server: &Server, request: &Request<Incoming>, is_ending: bool) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return response(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".into());
    }
    match request.uri().path() {
        "/metrics" => {
            let mut response = response(StatusCode::OK, figures::text(server));
            let format = "text/plain; version=0.0.4; charset=utf-8".parse().expect("the text is a header's");
            response.headers_mut().insert(CONTENT_TYPE, format);
            response
        }
        "/healthz" => response(StatusCode::OK, "ok\n".into()),
        "/readyz" => match (is_ending, server.keyspace.stats().trouble) {
            (true, _) => response(StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n".into()),
            (false, Some(trouble)) => response(StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
            (false, None) => response(StatusCode::OK, "ok\n".into()),
        },
        _ => response(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz\n".into()),
    }
}

fn response(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}
