//! The service over real sockets: statuses, problems that name the field, the same bytes for the same claim.

use std::net::SocketAddr;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Access, Service, ServiceError};
use crate::ledger::Ledger;
use crate::outbox::{HttpTarget, PublishPolicy, Publisher, Territory};
use crate::store::MemoryStore;

/// A service of a test; it ends with it.
struct Running {
    url: String,
    client: Client,
    _stop: oneshot::Sender<()>,
}

async fn serve(ledger: Ledger, access: Access) -> Running {
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let service = Service::bind(ledger, SocketAddr::from(([127, 0, 0, 1], 0)), access)
        .await
        .unwrap();
    let url = format!("http://{}", service.address());
    let (stop, stopped) = oneshot::channel::<()>();
    crate::outbox::spawn(service.run(async move {
        let _gone = stopped.await;
    }));
    Running {
        url,
        client: Client::builder().build().unwrap(),
        _stop: stop,
    }
}

async fn open() -> Running {
    serve(Ledger::open(MemoryStore::new()), Access::LoopbackOnly).await
}

impl Running {
    async fn send(&self, method: Method, path: &str, body: Option<&str>) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_owned());
        }
        request.send().await.unwrap()
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        read(self.send(Method::GET, path, None).await).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(self.send(Method::POST, path, Some(&body.to_string())).await).await
    }
}

async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    if status >= 400 {
        assert_eq!(kind, "application/problem+json");
        assert_eq!(body["status"], status);
        for field in ["type", "title", "detail"] {
            assert!(body[field].is_string(), "{body}");
        }
    }
    (status, body)
}

fn claim(token: &str, attempt: &str) -> Value {
    json!({
        "resource": "lock:reward:player-42",
        "fence_token": token,
        "player_id": "42",
        "reward_event_id": "season-2026-week-34:player-42:rank-3",
        "item": "gold",
        "amount": "500",
        "attempt_id": attempt,
    })
}

#[tokio::test]
async fn a_claim_is_created_replayed_byte_for_byte_refused_as_stale_and_in_conflict() {
    let service = open().await;
    let first = service
        .send(Method::POST, "/v1/claims", Some(&claim("102", "b").to_string()))
        .await;
    assert_eq!(first.status(), 201);
    let first = first.bytes().await.unwrap();
    let again = service
        .send(Method::POST, "/v1/claims", Some(&claim("103", "c").to_string()))
        .await;
    assert_eq!(again.status(), 200);
    assert_eq!(again.bytes().await.unwrap(), first);
    let receipt: Value = serde_json::from_slice(&first).unwrap();
    for (field, value) in claim("102", "b").as_object().unwrap() {
        assert_eq!(
            receipt[field], *value,
            "every field of the claim is in its receipt"
        );
    }

    let (status, stale) = service.post("/v1/claims", &claim("101", "a")).await;
    assert_eq!(
        (status, &stale["type"]),
        (409, &json!("urn:reward-ledger:problem:stale-token"))
    );
    assert_eq!(stale["highest_fence_token"], "103");
    assert_eq!(stale["applied"], receipt);
    let mut other = claim("103", "d");
    other["amount"] = json!("501");
    let (status, conflict) = service.post("/v1/claims", &other).await;
    assert_eq!((status, &conflict["fields"]), (422, &json!(["amount"])));

    let (status, record) = service
        .get("/v1/claims/42/season-2026-week-34:player-42:rank-3")
        .await;
    assert_eq!((status, &record["receipt"]), (200, &receipt));
    assert_eq!(record["delivery"]["state"], "pending");
    let (status, found) = service.get("/v1/claims?player_id=42&limit=1").await;
    assert_eq!((status, found["claims"].as_array().unwrap().len()), (200, 1));
    let (status, fence) = service.get("/v1/fences/lock:reward:player-42").await;
    assert_eq!((status, &fence["highest_fence_token"]), (200, &json!("103")));
    let (status, report) = service.get("/v1/audit").await;
    assert_eq!(
        (status, &report["clean"], &report["claims"]),
        (200, &json!(true), &json!("1"))
    );
}

/// L01 and L07: one 201, 63 times 200 with the same bytes, and no 5xx.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l01_l07_sixty_four_callers_with_one_event_at_once_get_one_receipt() {
    let service = open().await;
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..64 {
        let (client, url) = (service.client.clone(), format!("{}/v1/claims", service.url));
        let body = claim("7", &format!("try-{number}")).to_string();
        callers.spawn(async move {
            let request = client.post(url).header("content-type", "application/json");
            let response = request.body(body).send().await.unwrap();
            (response.status().as_u16(), response.bytes().await.unwrap())
        });
    }
    let answers = callers.join_all().await;
    let created = answers.iter().filter(|(status, _)| *status == 201);
    assert_eq!(created.count(), 1);
    assert!(
        answers
            .iter()
            .all(|(status, body)| matches!(status, 200 | 201) && *body == answers[0].1)
    );
}

#[tokio::test]
async fn a_malformed_request_gets_a_problem_that_names_the_field() {
    let service = open().await;
    for (field, value, named) in [
        ("player_id", json!(42), "player_id"),
        ("player_id", json!("042"), "player_id"),
        ("player_id", json!("43"), "player_id"),
        ("amount", json!("0"), "amount"),
        ("amount", json!("9223372036854775808"), "amount"),
        ("amount", json!("5.0"), "amount"),
        ("fence_token", json!("0"), "fence_token"),
        ("fence_token", Value::Null, "fence_token"),
        ("resource", json!(""), "resource"),
        ("item", json!("a\u{0}b"), "item"),
        ("attempt_id", json!("x".repeat(129)), "attempt_id"),
        ("attempt_id", json!([]), "attempt_id"),
        (
            "reward_event_id",
            json!("0b8f9c1e-7a52-4a60-9d52-3f6d1f2f9a10"),
            "reward_event_id",
        ),
        ("surprise", json!(1), "surprise"),
    ] {
        let mut body = claim("7", "a");
        body[field] = value.clone();
        let (status, problem) = service.post("/v1/claims", &body).await;
        assert_eq!(
            (status, &problem["field"]),
            (400, &json!(named)),
            "{field} = {value}: {problem}"
        );
    }
    for body in ["", "{", "[]", "null", "\"x\""] {
        let (status, problem) = read(service.send(Method::POST, "/v1/claims", Some(body)).await).await;
        assert_eq!((status, &problem["field"]), (400, &json!("body")), "{body}");
    }
    let batch = json!({ "mode": "each", "claims": [claim("7", "a"), { "player_id": "1" }] });
    let (status, problem) = service.post("/v1/claims/batch", &batch).await;
    assert_eq!(status, 400);
    assert_eq!(problem["field"], "claims[1].reward_event_id");
    let (status, problem) = service.get("/v1/claims?player_id=1&reward_event_id=a").await;
    assert_eq!((status, &problem["field"]), (400, &json!("query")));
    let (status, problem) = service.get("/v1/claims?limit=0").await;
    assert_eq!((status, &problem["field"]), (400, &json!("limit")));
    let (status, _) = service.get("/v1/nothing").await;
    assert_eq!(status, 404);
    let (status, _) = read(service.send(Method::DELETE, "/v1/claims", None).await).await;
    assert_eq!(status, 405);
    let unlabelled = service
        .client
        .post(format!("{}/v1/claims", service.url))
        .body(claim("7", "a").to_string());
    assert_eq!(read(unlabelled.send().await.unwrap()).await.0, 415);
    let large = format!("{{\"item\":\"{}\"}}", "x".repeat(super::BODY_BYTES_MAX));
    let (status, problem) = read(service.send(Method::POST, "/v1/claims", Some(&large)).await).await;
    assert_eq!((status, &problem["field"]), (413, &json!("body")));
    assert_eq!(
        service.get("/v1/audit").await.1["claims"],
        "0",
        "nothing was applied"
    );
}

#[tokio::test]
async fn batches_reversals_payments_and_fences_have_their_routes() {
    let service = open().await;
    let mut second = claim("6", "b");
    second["reward_event_id"] = json!("season-2026-week-35:player-42:rank-1");
    let claims = [claim("7", "a"), second];
    let (status, refused) = service
        .post("/v1/claims/batch", &json!({ "mode": "all", "claims": claims }))
        .await;
    assert_eq!((status, &refused["refused"][0]["index"]), (422, &json!(1)));
    let (status, each) = service
        .post("/v1/claims/batch", &json!({ "mode": "each", "claims": claims }))
        .await;
    assert_eq!(status, 200);
    assert_eq!(each["results"][0]["outcome"], "applied");
    assert_eq!(each["results"][1]["outcome"], "stale-token");

    let path = "/v1/claims/42/season-2026-week-34:player-42:rank-3/reversal";
    let reason = json!({ "reason": "a chargeback" });
    let (status, reversal) = service.post(path, &reason).await;
    assert_eq!(status, 201);
    assert_eq!(service.post(path, &reason).await, (200, reversal));
    assert_eq!(service.post(path, &json!({ "reason": "" })).await.0, 400);

    let start = json!({ "order_id": "order-1", "attempt_id": "pay-1", "resource": "lock:order-1",
        "fence_token": "101", "currency": "EUR-cent", "amount": "1999" });
    assert_eq!(service.post("/v1/payments", &start).await.0, 201);
    let mut other = start.clone();
    other["attempt_id"] = json!("pay-2");
    assert_eq!(service.post("/v1/payments", &other).await.0, 409);
    let report = json!({ "result": "unknown", "fence_token": "101", "note": "no answer" });
    let (status, attempt) = service.post("/v1/payments/order-1/pay-1/report", &report).await;
    assert_eq!((status, &attempt["status"]), (200, &json!("unknown")));
    let judged = json!({ "result": "approved", "reason": "the statement lists it" });
    let (status, attempt) = service
        .post("/v1/payments/order-1/pay-1/judgement", &judged)
        .await;
    assert_eq!((status, &attempt["status"]), (200, &json!("approved")));
    assert_eq!(
        service
            .post("/v1/payments/order-2/pay-1/judgement", &judged)
            .await
            .0,
        404
    );
    let (_, all) = service.get("/v1/payments/order-1").await;
    assert_eq!(all["attempts"].as_array().unwrap().len(), 1);

    let reset = json!({ "fence_token": "5", "reason": "the issuer lost its counter" });
    let (status, fence) = service.post("/v1/fences/lock:order-1/reset", &reset).await;
    assert_eq!(
        (status, &fence["last_reset"]["from_fence_token"]),
        (200, &json!("101"))
    );
    let (status, listed) = service.get("/v1/outbox?state=all").await;
    assert_eq!((status, listed["deliveries"].as_array().unwrap().len()), (200, 2));
    assert_eq!(
        service.post("/v1/outbox/1/discard", &reason).await.0,
        409,
        "it is not dead"
    );
    assert_eq!(service.post("/v1/outbox/99/discard", &reason).await.0, 404);
    assert_eq!(service.get("/v1/audit").await.1["clean"], true);
}

#[tokio::test]
async fn without_the_token_nothing_is_told_and_without_one_only_loopback_is_listened_on() {
    let token = "a-token-of-some-length";
    let ledger = Ledger::open(MemoryStore::new());
    let service = serve(ledger.clone(), Access::Token(token.to_owned())).await;
    assert_eq!(service.get("/v1/audit").await.0, 401);
    let with = |shown: &str| {
        service
            .client
            .get(format!("{}/v1/audit", service.url))
            .bearer_auth(shown)
    };
    assert_eq!(with("a-token-of-some-lengtH").send().await.unwrap().status(), 401);
    assert_eq!(with(token).send().await.unwrap().status(), 200);
    assert_eq!(service.send(Method::GET, "/healthz", None).await.status(), 200);
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Service::bind(ledger.clone(), anywhere, Access::LoopbackOnly).await;
    assert!(matches!(refused, Err(ServiceError::Open { .. })));
    assert!(Service::bind(ledger, anywhere, Access::Everybody).await.is_ok());
}

#[tokio::test]
async fn a_store_that_is_down_gives_503_and_says_whether_it_may_have_applied() {
    let ledger = Ledger::builder(MemoryStore::new().rows_max(0)).open();
    let service = serve(ledger, Access::LoopbackOnly).await;
    let (status, problem) = service.post("/v1/claims", &claim("7", "a")).await;
    assert_eq!((status, &problem["may_have_applied"]), (503, &json!(false)));
    let metrics = service
        .send(Method::GET, "/metrics", None)
        .await
        .text()
        .await
        .unwrap();
    assert!(
        metrics.contains("reward_ledger_http_responses_total{class=\"5xx\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("reward_ledger_outbox_open 0"));
}

#[tokio::test]
async fn an_export_over_http_goes_into_another_ledger() {
    let from = Ledger::open(MemoryStore::new());
    let service = serve(from.clone(), Access::LoopbackOnly).await;
    assert_eq!(service.post("/v1/claims", &claim("7", "a")).await.0, 201);
    assert_eq!(service.post("/v1/claims", &claim("6", "b")).await.0, 409);
    let exported = service
        .send(Method::GET, "/v1/export", None)
        .await
        .text()
        .await
        .unwrap();
    let into = Ledger::open(MemoryStore::new());
    let rows = crate::archive::import(&into, exported.as_bytes(), |_| {})
        .await
        .unwrap();
    assert_eq!(rows, 4, "a claim, two attempts, a fence");
    let mut again = String::new();
    let mut exporter = crate::archive::Exporter::new(into.clone());
    while let Some(text) = exporter.next().await.unwrap() {
        again.push_str(&text);
    }
    assert_eq!(again, exported);
    assert!(into.audit().await.unwrap().is_clean());

    let (head, _) = exported.trim_end().rsplit_once('\n').unwrap();
    for cut in [
        format!("{head}\n"),
        head.to_owned(),
        format!("{exported}{exported}"),
    ] {
        let refused = crate::archive::import(&into, cut.as_bytes(), |_| {}).await;
        assert!(refused.is_err(), "{cut}");
    }
}

/// The description knows every route that is served, with its methods, and no other.
#[tokio::test]
async fn the_description_and_the_routes_agree() {
    let service = open().await;
    let (status, description) = service.get("/openapi.json").await;
    assert_eq!(status, 200);
    assert_eq!(description["openapi"], "3.1.0");
    let paths = description["paths"].as_object().unwrap();
    let source = include_str!("mod.rs");
    let routes: Vec<&str> = source
        .split(".route(")
        .skip(1)
        .map(|rest| rest.split('"').nth(1).unwrap())
        .collect();
    let mut known: Vec<&str> = paths.keys().map(String::as_str).collect();
    let mut served = routes.clone();
    known.sort_unstable();
    served.sort_unstable();
    assert_eq!(known, served);
    for (path, item) in paths {
        let concrete = path
            .replace("{player_id}", "1")
            .replace("{delivery_id}", "1")
            .replace(['{', '}'], "");
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            let is_described = item.get(method.as_str().to_lowercase()).is_some();
            let status = service.send(method.clone(), &concrete, None).await.status();
            assert_eq!(status != 405, is_described, "{method} {path}: {status}");
        }
    }
}

/// Programs are generated from the description: each operation has a name of its own, and each refusal is a problem.
#[tokio::test]
async fn every_operation_has_a_name_and_every_refusal_is_a_problem() {
    let (_, description) = open().await.get("/openapi.json").await;
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let is_problem = &response["content"]["application/problem+json"]["schema"]["$ref"]
                    == "#/components/schemas/Problem";
                // Probes read words.
                let is_refusal = status.starts_with(['4', '5']) && path != "/healthz";
                assert_eq!(is_problem, is_refusal, "{method} {path} {status}");
            }
        }
    }
}

/// S8 over a real connection: the ledger's own service is no outside server, so one is played by another service's
/// socket that is closed: nothing was done, and that is known.
#[tokio::test]
async fn a_target_that_cannot_be_reached_has_surely_done_nothing() {
    let closed = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    let ledger = Ledger::open(MemoryStore::new());
    let service = serve(ledger.clone(), Access::LoopbackOnly).await;
    assert_eq!(service.post("/v1/claims", &claim("7", "a")).await.0, 201);
    let target = HttpTarget::builder(format!("http://{closed}/items"))
        .build()
        .unwrap();
    let policy = PublishPolicy::builder(std::time::Duration::from_secs(3_600))
        .tries_max(1)
        .build()
        .unwrap();
    let publisher = Publisher::start(ledger, target, policy, Territory::everything());
    publisher
        .published_until(|published| published.dead == 1)
        .await
        .unwrap();
    let (_, dead) = service.get("/v1/outbox").await;
    let delivery = &dead["deliveries"][0];
    assert_eq!(delivery["delivery"]["outcome"], "not-done", "{delivery}");
    assert_eq!(service.post("/v1/outbox/1/retry", &json!({})).await.0, 200);
}

/// The service, asked as an outside server: 4xx is a refusal for good, and its words are kept.
#[tokio::test]
async fn what_an_http_target_refuses_is_dead_with_its_words() {
    let ledger = Ledger::open(MemoryStore::new());
    let service = serve(ledger.clone(), Access::LoopbackOnly).await;
    assert_eq!(service.post("/v1/claims", &claim("7", "a")).await.0, 201);
    let target = HttpTarget::builder(format!("{}/v1/nothing", service.url))
        .build()
        .unwrap();
    let policy = PublishPolicy::builder(std::time::Duration::from_secs(3_600))
        .build()
        .unwrap();
    let publisher = Publisher::start(ledger, target, policy, Territory::everything());
    publisher
        .published_until(|published| published.dead == 1)
        .await
        .unwrap();
    let (_, dead) = service.get("/v1/outbox").await;
    let note = dead["deliveries"][0]["delivery"]["note"].as_str().unwrap();
    assert!(note.contains("404") && note.contains("no such route"), "{note}");
}
