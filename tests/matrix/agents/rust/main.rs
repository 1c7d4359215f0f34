// Rust's own library, HTTP by hand: a streamed tool loop, then three at once. It has no TLS, so it asks by a port of
// `--reverse`, by HTTP_PROXY, or plainly, whatever the first argument says. A binary has no clock or chance that a tape
// knows, so it asks for none.
use std::env::{args, var};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;

const TOOLS: &str = r#"[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]"#;
const USER: &str = r#"{"role":"user","content":"The weather?"}"#;
const HOST: &str = "api.openai.com";

/// Where to connect to, the request's target and its Host.
fn way() -> (String, String, String) {
    let target = "/v1/chat/completions";
    match args().nth(1).as_deref() {
        Some("reverse") => {
            let base = var("OPENAI_BASE_URL").expect("OPENAI_BASE_URL");
            let port = base.trim_start_matches("http://").split('/').next().unwrap().to_string();
            (port.clone(), target.to_string(), port)
        }
        Some("proxy") => {
            let proxy = var("HTTP_PROXY").expect("HTTP_PROXY");
            let place = proxy.trim_start_matches("http://").trim_end_matches('/').to_string();
            (place, format!("http://{HOST}{target}"), HOST.to_string())
        }
        _ => (format!("{HOST}:80"), target.to_string(), HOST.to_string()),
    }
}

/// The answer's body, read piece by piece as it comes.
fn ask(body: String) -> String {
    let (place, target, host) = way();
    let key = var("OPENAI_API_KEY").unwrap_or_default();
    let mut stream = TcpStream::connect(place).expect("connect");
    write!(
        stream,
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("send");
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        if line.trim().is_empty() {
            break;
        }
        head.push(line.to_lowercase());
    }
    assert!(head[0].contains(" 200 "), "{}", head[0]);
    let mut whole = Vec::new();
    if head.iter().any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked")) {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).expect("a size");
            let size = usize::from_str_radix(size.trim(), 16).expect("a size in hexadecimal");
            if size == 0 {
                break;
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).expect("a chunk");
            whole.extend_from_slice(&chunk[..size]);
        }
    } else {
        reader.read_to_end(&mut whole).expect("a body");
    }
    String::from_utf8(whole).expect("a text")
}

/// The object that stands after `name` in a JSON text.
fn object<'a>(text: &'a str, name: &str) -> &'a str {
    let from = text.find(name).expect(name) + name.len();
    let start = from + text[from..].find('{').expect("an object");
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, letter) in text[start..].char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[start..start + at + 1];
        }
    }
    panic!("{name} was cut");
}

fn main() {
    let first = ask(format!(r#"{{"model":"gpt-5","tools":{TOOLS},"messages":[{USER}]}}"#));
    let said = object(&first, "\"message\":");
    println!("{said}");
    let mut messages = format!("{USER},{said}");
    for id in said.split("\"call_").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        messages += &format!(r#",{{"role":"tool","tool_call_id":"call_{id}","content":"rain"}}"#);
    }
    print!("{}", ask(format!(r#"{{"model":"gpt-5","stream":true,"messages":[{messages}]}}"#)));

    let asked = ["left", "right", "middle"].map(|name| {
        let body = format!(r#"{{"model":"gpt-5","stream":true,"messages":[{{"role":"user","content":"{name}"}}]}}"#);
        thread::spawn(move || ask(body))
    });
    for one in asked {
        print!("{}", one.join().expect("an answer"));
    }
}
