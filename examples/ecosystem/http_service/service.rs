//! Answers requests. It knows nothing of the runtime.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use wakerun_channel::mpsc::Sender;

use crate::metrics::Metrics;

/// Bytes of an event at most.
const LARGEST_EVENT: usize = 64 * 1024;

pub(crate) struct Service {
    events: Sender<Bytes>,
    metrics: Arc<Metrics>,
}

type Answer = Response<Full<Bytes>>;

impl Service {
    pub(crate) fn new(events: Sender<Bytes>, metrics: Arc<Metrics>) -> Self {
        Self { events, metrics }
    }

    /// Answers a request.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/events") => self.take(request.into_body()).await,
            (&Method::GET, "/metrics") => {
                let text = self
                    .metrics
                    .text(self.events.len(), self.events.max_capacity());
                let mut answer = say(StatusCode::OK, text);
                let kind = HeaderValue::from_static("text/plain; version=0.0.4");
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            (_, "/events") => only("POST"),
            (_, "/metrics") => only("GET"),
            _ => say(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    /// Takes an event, or says that it cannot. Never waits for the writer.
    async fn take<B>(&self, body: B) -> Answer
    where
        B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        if self.events.capacity() == 0 {
            // The body is not even read.
            return self.refuse();
        }
        let event = match Limited::new(body, LARGEST_EVENT).collect().await {
            Ok(event) => event.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return say(StatusCode::PAYLOAD_TOO_LARGE, "the event is too large");
            }
            Err(_) => return say(StatusCode::BAD_REQUEST, "the event did not arrive"),
        };
        let Ok(permit) = self.events.try_reserve() else {
            return self.refuse();
        };
        if permit.send(event).is_err() {
            // The writer has failed just now.
            return self.refuse();
        }
        self.metrics.count_accepted();
        say(StatusCode::ACCEPTED, "")
    }

    /// The queue is full, or the service ends.
    fn refuse(&self) -> Answer {
        self.metrics.count_refused();
        let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, "too much to do");
        let soon = HeaderValue::from_static("1");
        answer.headers_mut().insert(RETRY_AFTER, soon);
        answer
    }
}

/// What a request gets that took too long.
pub(crate) fn too_late() -> Answer {
    say(StatusCode::REQUEST_TIMEOUT, "the request took too long")
}

fn only(method: &'static str) -> Answer {
    let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, "");
    let method = HeaderValue::from_static(method);
    answer.headers_mut().insert(ALLOW, method);
    answer
}

fn say(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer
}
