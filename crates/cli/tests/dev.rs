//! `homeostat dev` as people and programs use it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

/// A running server. It is killed when this is dropped.
struct Dev {
    child: Child,
    url: String,
}

/// A folder of one test.
struct Folder(PathBuf);

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    command.arg("dev").args(args).env_remove("RUST_LOG");
    command
}

fn fails(args: &[&str], code: i32) -> String {
    let Output { status, stderr, .. } = command(args).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{args:?}: {text}");
    text
}

// === impl Dev ===

impl Dev {
    /// Starts a server and waits until it says that it is ready.
    fn start(args: &[&str]) -> Self {
        let mut command = command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ");
        let url = url
            .expect("the first line says where it listens")
            .to_owned();
        Self { child, url }
    }

    fn address(&self) -> SocketAddr {
        let (_, address) = self.url.split_once("://").unwrap();
        address.parse().unwrap()
    }

    /// A request on plain HTTP. The answer's status and body.
    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        self.ask_with(method, path, "X-Homeostat-Debug: yes")
    }

    /// The same with another header.
    fn ask_with(&self, method: &str, path: &str, header: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let head = format!("{method} {path} HTTP/1.0\r\nUser-Agent: test/1\r\n{header}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Ends it in good order. What it wrote to standard error.
    fn stop(mut self) -> String {
        let mut stderr: ChildStderr = self.child.stderr.take().unwrap();
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(killed.success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

// === impl Folder ===

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("homeostat-dev-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.file(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind, the system cleans up.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn it_begins_with_the_manifests_in_order() {
    let folder = Folder::new("manifests");
    let definition = include_str!("../../../examples/website/crd.yaml");
    let first = folder.write("first.yaml", definition);
    let second = folder.write(
        "second.yaml",
        include_str!("../../../examples/website/site.yaml"),
    );
    let dev = Dev::start(&["--manifest", &first, &second, "--workloads"]);
    assert!(dev.url.starts_with("http://127.0.0.1:"), "{}", dev.url);
    let path = "/apis/demo.homeostat.dev/v1/namespaces/default/websites/blog";
    let (status, body) = dev.ask("GET", path);
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("homeostat-dev"), "{body}");
    // Nobody asked for these.
    assert_eq!(dev.ask("POST", "/debug/compact").0, 404);
    assert_eq!(dev.stop(), "");
}

#[cfg(unix)]
#[test]
fn the_kubeconfig_is_private_and_the_server_then_is_too() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("kubeconfig");
    // A file that everybody can read, as `mktemp` does not make it, does not stay one.
    let file = folder.write("config", "");
    let dev = Dev::start(&["--kubeconfig", &file]);
    assert!(dev.url.starts_with("https://127.0.0.1:"), "{}", dev.url);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    for part in [&dev.url, "certificate-authority-data: ", "token: "] {
        assert!(text.contains(part), "{part}");
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    // kubectl and curl find out the rest by themselves; this one speaks no TLS.
    let (status, body) = dev.ask("GET", "/api");
    assert_eq!(
        (status, body.contains("HTTPS server")),
        (400, true),
        "{body}"
    );
}

#[test]
fn a_kubeconfig_of_somebody_elses_is_left_alone() {
    let folder = Folder::new("foreign");
    let file = folder.file("config");
    let mixed = "contexts:\n- name: homeostat\n- name: prod\ncurrent-context: homeostat\n";
    for text in ["current-context: prod\n", mixed] {
        fs::write(&file, text).unwrap();
        let output = command(&["--kubeconfig", &file]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("there already"), "{error}");
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    // Its own of an earlier time is replaced.
    fs::remove_file(&file).unwrap();
    let contents = [(), ()].map(|()| {
        let _dev = Dev::start(&["--kubeconfig", &file]);
        fs::read_to_string(&file).unwrap()
    });
    assert_ne!(
        contents[0], contents[1],
        "each server has a token of its own"
    );
}

#[test]
fn requests_are_logged_where_that_is_wanted() {
    let dev = Dev::start(&["--log", "requests"]);
    dev.ask("GET", "/api/v1/namespaces?limit=3");
    dev.ask("GET", "/nonsense");
    let log = dev.stop();
    for part in [
        "GET /api/v1/namespaces?limit=3 200",
        "GET /nonsense 404",
        "\"test/1\"",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn history_is_forgotten_on_demand() {
    let dev = Dev::start(&["--debug"]);
    let exact = "/api/v1/namespaces?resourceVersionMatch=Exact&resourceVersion=3";
    assert_eq!(dev.ask("GET", exact).0, 200);
    assert_eq!(dev.ask("POST", "/debug/compact").0, 200);
    assert_eq!(dev.ask("GET", exact).0, 410);
    // Time goes by itself here.
    assert_eq!(dev.ask("POST", "/debug/advance?ms=1000").0, 409);
}

#[test]
fn virtual_time_stands_still_until_it_is_advanced() {
    let folder = Folder::new("time");
    let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let file = folder.write("one.yaml", one);
    let dev = Dev::start(&["--debug", "--virtual-time", "--manifest", &file]);
    let (_, map) = dev.ask("GET", "/api/v1/namespaces/default/configmaps/a");
    assert!(
        map.contains(r#""creationTimestamp":"2026-01-01T00:00:00Z""#),
        "{map}"
    );
    // A watch whose time is over when the server says so.
    let watch = "/api/v1/configmaps?watch=1&timeoutSeconds=3600";
    let (ended, now) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| dev.ask("GET", watch));
        // Each answer leaves time where it is, however long it takes.
        let mut last = String::new();
        while !watching.is_finished() {
            let (status, now) = dev.ask("POST", "/debug/advance?ms=600000");
            assert_eq!(status, 200, "{now}");
            last = now;
        }
        (watching.join().unwrap(), last)
    });
    assert_eq!((ended.0, ended.1.contains("ADDED")), (200, true));
    assert!(now.as_str() >= "it is 2026-01-01T01:00:00Z", "{now}");
    assert_eq!(dev.stop(), "");
}

#[test]
fn what_the_caller_did_wrong_is_said() {
    let folder = Folder::new("wrong");
    let bad = folder.write("bad.yaml", "a: [1");
    let typo = folder.write(
        "typo.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndat: {}\n",
    );
    let none = folder.file("none.yaml");
    let nowhere = folder.file("no/such/folder/config");
    for (args, parts) in [
        (vec!["--manifest", &none], ["none.yaml", "cannot read"]),
        (
            vec!["--manifest", &bad],
            ["bad.yaml", "neither YAML nor JSON"],
        ),
        (
            vec!["--manifest", &typo],
            ["typo.yaml: object 1", "refuses ConfigMap p"],
        ),
        (
            vec!["--kubeconfig", &nowhere],
            ["cannot write", "no/such/folder"],
        ),
        (vec!["--listen", "nonsense"], ["--listen", "ADDR:PORT"]),
        (
            vec!["--listen", "127.0.0.1:99999"],
            ["--listen", "ADDR:PORT"],
        ),
        (
            vec!["--listen", "0.0.0.0:0"],
            ["other machines", "--kubeconfig"],
        ),
        (vec!["--virtual-time"], ["--debug", "required"]),
        (vec!["--rbac"], ["--kubeconfig", "required"]),
        (vec!["--log", "everything"], ["--log", "requests"]),
    ] {
        let problem = fails(&args, 2);
        for part in parts {
            assert!(problem.contains(part), "{args:?}: {part}: {problem}");
        }
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let problem = fails(&["--listen", &address], 1);
    assert!(
        problem.contains(&address) && problem.contains("port 0"),
        "{problem}"
    );
}

/// A web page that makes its own name point to the loopback interface reads nothing, and no form debugs.
#[test]
fn web_pages_get_no_answer() {
    let dev = Dev::start(&["--debug", "--allow-host", "dev.example", "other.example"]);
    for (host, expected) in [
        ("evil.example:80", 421),
        ("localhost.evil.example", 421),
        ("localhost:8001", 200),
        ("127.0.0.1", 200),
        ("dev.example", 200),
        ("OTHER.example:1", 200),
    ] {
        let (status, text) = dev.ask_with("GET", "/api", &format!("Host: {host}"));
        assert_eq!(status, expected, "{host}: {text}");
        assert_eq!(text.contains("--allow-host"), expected == 421, "{text}");
    }
    for (header, expected) in [
        ("Content-Type: application/x-www-form-urlencoded", 403),
        ("Content-Type: text/plain", 403),
        ("Content-Type: application/json", 200),
        ("x-homeostat-debug: 1", 200),
    ] {
        let (status, text) = dev.ask_with("POST", "/debug/compact", header);
        assert_eq!(status, expected, "{header}: {text}");
        assert_eq!(
            text.contains("X-Homeostat-Debug"),
            expected == 403,
            "{text}"
        );
    }
}

#[test]
fn help_says_what_each_argument_is_for() {
    let Output { stdout, status, .. } = command(&["--help"]).output().unwrap();
    assert!(status.success());
    let help = String::from_utf8(stdout).unwrap();
    for word in [
        "--listen",
        "--manifest",
        "--kubeconfig",
        "--workloads",
        "--log",
        "--debug",
        "--allow-host",
        "X-Homeostat-Debug",
        "/debug/compact",
        "/debug/advance?ms=N",
        "listening on URL",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

/// The time that the process itself used, because a busy machine makes everything wait.
#[cfg(target_os = "linux")]
#[test]
fn it_is_ready_at_once() {
    /// Hundredths of a second, which is what Linux counts in for programs.
    fn used(dev: &Dev) -> u64 {
        let stat = Path::new("/proc").join(dev.child.id().to_string());
        let stat = fs::read_to_string(stat.join("stat")).unwrap();
        // The name of the program, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
        ticks(11) + ticks(12)
    }
    let folder = Folder::new("ready");
    let least = (0..3).map(|_| {
        let dev = Dev::start(&["--kubeconfig", &folder.file("config")]);
        used(&dev)
    });
    // 100 ms for a release build, which debug builds do not reach.
    let limit = if cfg!(debug_assertions) { 100 } else { 10 };
    let least = least.min().unwrap();
    assert!(least <= limit, "{least} hundredths of a second");
}
