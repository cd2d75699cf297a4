import Foundation
internal import Glibc

/// A small real SMTP server, in Python's standard library, that keeps what it receives.
package final class MailServer: Sendable {
    /// How it is encrypted.
    package enum Encryption: String, Sendable, CaseIterable {
        case none
        /// After STARTTLS, without which it takes no mail.
        case startTLS = "starttls"
        case immediate
    }

    /// What the server does; written to its file, and read for each command.
    package struct Behavior: Sendable {
        /// Responses by verb, such as `["RCPT": "550 no"]`, instead of its own.
        package var responses: [String: String] = [:]
        /// A verb to which it never responds.
        package var hangsAt = ""
        /// A verb at which it closes the connection.
        package var closesAt = ""

        package init(responses: [String: String] = [:], hangsAt: String = "", closesAt: String = "") {
            self.responses = responses
            self.hangsAt = hangsAt
            self.closesAt = closesAt
        }
    }

    /// One accepted mail.
    package struct Mail: Sendable {
        package let sender: String
        package let recipients: [String]
        /// The bytes between `DATA` and the final dot, with dots unstuffed.
        package let content: String
        package let user: String?
        package let isEncrypted: Bool

        /// The text of the mail, decoded.
        package var text: String {
            let parts = content.components(separatedBy: "\r\n\r\n")
            let body = parts.dropFirst().joined(separator: "\r\n\r\n")
            guard parts.first?.contains("Content-Transfer-Encoding: base64") == true,
                let data = Data(base64Encoded: body.replacing("\r\n", with: ""))
            else { return body }
            return String(decoding: data, as: UTF8.self)
        }
    }

    package let port: UInt16
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// Starts a server and waits until it responds.
    /// - Parameters:
    ///   - certificate: needed unless the connection is in clear text.
    ///   - login: the user and the password that it demands, if any.
    package init(
        _ encryption: Encryption = .none, certificate: CertificateAuthority.Issued? = nil,
        login: (user: String, password: String)? = nil, behavior: Behavior = Behavior()
    ) throws {
        folder = try TemporaryFolder()
        port = try refusedPort()
        let arguments = [
            String(port), folder.path, encryption.rawValue, certificate?.certificateFile ?? "",
            certificate?.keyFile ?? "", login?.user ?? "", login?.password ?? "",
        ]
        try MailServer.write(behavior, to: folder)
        let (path, port) = (folder.file("ready"), port)
        process = try ChildProcess(
            try Executable.named("python3"), ["-c", MailServer.script] + arguments, output: folder, name: "smtp")
        let child = process
        try waitUntil("the mail server listens on \(port)") {
            guard child.poll() == nil else { throw TestFailure("the mail server ended: \(child.errorOutput)") }
            return FileManager.default.fileExists(atPath: path)
        }
    }

    /// Changes what it does from the next command on.
    package func behave(_ behavior: Behavior) throws { try MailServer.write(behavior, to: folder) }

    /// The mails that it has accepted, in order.
    package var mails: [Mail] {
        lines.compactMap { line in
            guard let sender = line["from"] as? String, let recipients = line["to"] as? [String],
                let content = line["content"] as? String
            else { return nil }
            return Mail(
                sender: sender, recipients: recipients, content: content, user: line["user"] as? String,
                isEncrypted: line["encrypted"] as? Bool ?? false)
        }
    }

    /// The commands that it has received, without their arguments.
    package var verbs: [String] { lines.compactMap { $0["verb"] as? String } }

    private var lines: [[String: Any]] {
        let text = (try? String(contentsOfFile: folder.file("received"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { line in
            try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        }
    }

    private static func write(_ behavior: Behavior, to folder: TemporaryFolder) throws {
        let object: [String: Any] = [
            "responses": behavior.responses, "hangs": behavior.hangsAt, "closes": behavior.closesAt,
        ]
        let text = String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
        // A file that is renamed into place is never read half written.
        try folder.write(text, to: "behavior.new")
        guard unsafe rename(folder.file("behavior.new"), folder.file("behavior")) == 0 else {
            throw TestFailure("cannot rename: errno \(errno)")
        }
    }

    private static let script = """
        import base64, json, os, socketserver, ssl, sys, threading, time
        port, folder, encryption, certificate, key, user, password = sys.argv[1:]
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
        lock = threading.Lock()

        def note(**entry):
            with lock, open(os.path.join(folder, "received"), "a") as file:
                file.write(json.dumps(entry) + "\\n")

        class Session(socketserver.BaseRequestHandler):
            def secure(self):
                self.request = context.wrap_socket(self.request, server_side=True)
                self.file = self.request.makefile("rb")
                self.encrypted = True

            def say(self, text):
                self.request.sendall(text.encode() + b"\\r\\n")

            def read(self):
                line = self.file.readline(4096)
                if not line:
                    raise ConnectionError
                assert line.endswith(b"\\r\\n"), line
                return line[:-2]

            def handle(self):
                try:
                    self.talk()
                except (OSError, ConnectionError, ssl.SSLError):
                    pass

            def talk(self):
                self.encrypted, self.user, self.sender, self.recipients = False, None, None, []
                self.file = self.request.makefile("rb")
                if encryption == "immediate":
                    self.secure()
                self.say("220 mail.test ESMTP")
                while True:
                    line = self.read().decode("latin-1")
                    verb = line.split(" ")[0].upper()
                    note(verb=verb)
                    with open(os.path.join(folder, "behavior")) as file:
                        behavior = json.load(file)
                    if verb == behavior["closes"]:
                        return
                    while verb == behavior["hangs"]:
                        time.sleep(1)
                    if verb in behavior["responses"]:
                        self.say(behavior["responses"][verb])
                        continue
                    if verb == "QUIT":
                        self.say("221 bye")
                        return
                    getattr(self, "do_" + verb, self.unknown)(line)

            def unknown(self, line):
                self.say("500 unknown command")

            def do_EHLO(self, line):
                offers = ["mail.test"]
                if encryption == "starttls" and not self.encrypted:
                    offers.append("STARTTLS")
                if user and (self.encrypted or encryption == "none"):
                    offers.append("AUTH PLAIN")
                for index, offer in enumerate(offers):
                    self.say(("250 " if index == len(offers) - 1 else "250-") + offer)

            def do_STARTTLS(self, line):
                self.say("220 go ahead")
                self.secure()

            def do_AUTH(self, line):
                words = line.split(" ")
                if len(words) == 2:
                    self.say("334 ")
                    words.append(self.read().decode())
                _, name, secret = base64.b64decode(words[2]).decode().split("\\0")
                if (name, secret) != (user, password):
                    return self.say("535 no")
                self.user = name
                self.say("235 welcome")

            def do_MAIL(self, line):
                if encryption == "starttls" and not self.encrypted:
                    return self.say("530 STARTTLS first")
                if user and not self.user:
                    return self.say("530 authenticate first")
                self.sender, self.recipients = line[len("MAIL FROM:"):].split(" ")[0], []
                self.say("250 ok")

            def do_RCPT(self, line):
                self.recipients.append(line[len("RCPT TO:"):].split(" ")[0])
                self.say("250 ok")

            def do_DATA(self, line):
                self.say("354 end with a dot")
                lines = []
                while (text := self.read()) != b".":
                    lines.append(text[1:] if text.startswith(b".") else text)
                content = b"".join(text + b"\\r\\n" for text in lines).decode()
                with open(os.path.join(folder, "behavior")) as file:
                    response = json.load(file)["responses"].get("CONTENT")
                if response:
                    return self.say(response)
                note(**{"from": self.sender, "to": self.recipients, "content": content, "user": self.user,
                        "encrypted": self.encrypted})
                self.say("250 queued")

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        with Server(("127.0.0.1", int(port)), Session) as server:
            open(os.path.join(folder, "ready"), "w").close()
            server.serve_forever()
        """
}
