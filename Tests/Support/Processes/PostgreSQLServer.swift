import Foundation

/// A real PostgreSQL server of the test's own, on a port and a Unix socket of its own, with passwords and TLS.
package final class PostgreSQLServer: Sendable {
    package static let user = "martlet"
    /// Holds what has to be percent-encoded in a URL.
    package static let password = "p@ss:w/rd%"
    private static let encodedPassword = "p%40ss%3Aw%2Frd%25"

    package let port: UInt16
    /// The folder of the Unix socket.
    package let socketFolder: String
    /// What signed the server's certificate, which is good for `localhost` and `127.0.0.1`.
    package let authority: CertificateAuthority
    private let folder: TemporaryFolder
    private let data: String
    private let process: Box<ChildProcess?>

    /// Makes an empty cluster, starts it and waits until it responds.
    package init() throws {
        folder = try TemporaryFolder()
        authority = try CertificateAuthority(name: "PostgreSQL CA")
        port = try refusedPort()
        socketFolder = folder.path
        data = folder.file("data")
        process = Box(nil)
        try prepare()
        try start()
    }

    /// Copies a server that runs, and starts the copy as its standby.
    package init(standbyOf primary: PostgreSQLServer) throws {
        folder = try TemporaryFolder()
        authority = primary.authority
        port = try refusedPort()
        socketFolder = folder.path
        data = folder.file("data")
        process = Box(nil)
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        for path in [folder.path, data] { try giveAway(path) }
        let arguments = ["-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", primary.url()]
        let copy = try child([try Self.program("pg_basebackup")] + arguments, "basebackup")
        let ending = try copy.wait(within: .seconds(60))
        guard ending == .exited(0) else { throw TestFailure("pg_basebackup: \(ending) \(copy.errorOutput)") }
        try start()
    }

    deinit { try? stop() }

    /// The URL of several servers, in this order.
    package static func url(_ servers: [PostgreSQLServer], database: String = "postgres") -> String {
        let hosts = servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        return "postgresql://\(user):\(encodedPassword)@\(hosts)/\(database)"
    }

    /// Makes a standby a primary with the next timeline.
    package func promote() throws { _ = try query("SELECT pg_promote(true, 30)") }

    /// As `accounts.url` is written, over TCP.
    package func url(database: String = "postgres", host: String = "127.0.0.1", options: String = "") -> String {
        "postgresql://\(Self.user):\(Self.encodedPassword)@\(host):\(port)/\(database)\(options)"
    }

    /// The same over the Unix socket.
    package func socketURL(database: String = "postgres") -> String {
        "postgresql://\(Self.user):\(Self.encodedPassword)@/\(database)?host=\(socketFolder)&port=\(port)"
    }

    /// Makes an empty database and returns its name.
    package func makeDatabase() throws -> String {
        let name = "test_" + String(UInt64.random(in: .min ... .max), radix: 36)
        _ = try query("CREATE DATABASE \(name) TEMPLATE template0")
        return name
    }

    /// Runs a statement and returns what psql prints.
    package func query(_ text: String, database: String = "postgres") throws -> String {
        let arguments = ["--no-psqlrc", "-qtAX", "-v", "ON_ERROR_STOP=1", "-c", text, socketURL(database: database)]
        let result = try run(try Self.program("psql"), arguments)
        guard result.ending == .exited(0) else { throw TestFailure("psql: \(result)") }
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Starts a statement that takes long, in a session of its own, and does not wait for it.
    package func session(_ text: String, database: String, _ folder: TemporaryFolder) throws -> ChildProcess {
        let arguments = ["--no-psqlrc", "-qtAX", "-c", text, socketURL(database: database)]
        return try ChildProcess(try Self.program("psql"), arguments, output: folder, name: "psql")
    }

    /// Starts the server on its port, with what it had.
    package func start() throws {
        let name = "postgres-\(UInt32.random(in: 0 ... .max))"
        let arguments = [try Self.program("postgres"), "-D", data, "-p", String(port), "-k", socketFolder]
        let child = try self.child(arguments, name)
        process.withLock { $0 = child }
        try waitUntil("PostgreSQL responds on \(port)", within: .seconds(30)) {
            if let ending = child.poll() { throw TestFailure("PostgreSQL ended: \(ending) \(child.errorOutput)") }
            return (try? query("SELECT 1")) == "1"
        }
    }

    /// Ends the server and its children immediately, as a crash would.
    package func stop() throws {
        guard let child = process.value else { return }
        freeze(false)
        child.kill(SIGQUIT)
        _ = try child.wait()
    }

    /// Stops or continues the server and every process of its own, so that it accepts and does not respond.
    package func freeze(_ frozen: Bool) {
        guard let child = process.value else { return }
        let signal = frozen ? SIGSTOP : SIGCONT
        child.kill(signal)
        for identifier in Self.children(of: child.identifier) { kill(identifier, signal) }
    }

    private func prepare() throws {
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        let secret = try folder.write(Self.password, to: "password")
        let certificate = try authority.issue("postgresql", ["DNS:localhost", "IP:127.0.0.1"])
        let files = [certificate.certificateFile, certificate.keyFile, authority.certificateFile]
        let copies = [folder.file("server.pem"), folder.file("server.key"), folder.file("ca.pem")]
        for (file, copy) in zip(files, copies) { try FileManager.default.copyItem(atPath: file, toPath: copy) }
        for path in [folder.path, data, secret] + copies { try giveAway(path) }
        let initdb = try child(
            [
                try Self.program("initdb"), "-D", data, "-U", Self.user, "-A", "scram-sha-256", "--pwfile", secret,
                "-E", "UTF8", "--no-locale", "--no-sync",
            ], "initdb")
        let ending = try initdb.wait(within: .seconds(60))
        guard ending == .exited(0) else { throw TestFailure("initdb: \(ending) \(initdb.errorOutput)") }
        let settings = """
            listen_addresses = '127.0.0.1'
            fsync = off
            ssl = on
            ssl_cert_file = '\(copies[0])'
            ssl_key_file = '\(copies[1])'
            ssl_ca_file = '\(copies[2])'
            max_connections = 1000

            """
        let file = data + "/postgresql.auto.conf"
        try settings.write(toFile: file, atomically: true, encoding: .utf8)
        try giveAway(file)
    }

    /// PostgreSQL refuses to run as root: as root we run it as the user of Debian's package.
    private func child(_ arguments: [String], _ name: String) throws -> ChildProcess {
        guard geteuid() == 0 else {
            return try ChildProcess(arguments[0], Array(arguments.dropFirst()), output: folder, name: name)
        }
        let change = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
        return try ChildProcess(try Executable.named("setpriv"), change + arguments, output: folder, name: name)
    }

    private func giveAway(_ path: String) throws {
        let isFolder = path == folder.path || path == data
        try FileManager.default.setAttributes([.posixPermissions: isFolder ? 0o700 : 0o600], ofItemAtPath: path)
        guard geteuid() == 0 else { return }
        try FileManager.default.setAttributes([.ownerAccountName: "postgres"], ofItemAtPath: path)
    }

    private static func program(_ name: String) throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        for version in versions.sorted(by: >) {
            let path = "\(root)/\(version)/bin/\(name)"
            if FileManager.default.isExecutableFile(atPath: path) { return path }
        }
        return try Executable.named(name)
    }

    private static func children(of parent: Int32) -> [Int32] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.compactMap(Int32.init).filter { identifier in
            guard let data = FileManager.default.contents(atPath: "/proc/\(identifier)/stat") else { return false }
            // The name, in brackets, may hold spaces.
            let text = String(decoding: data, as: UTF8.self)
            let fields = text.drop { $0 != ")" }.split(separator: " ")
            return fields.count > 2 && fields[2] == String(parent)
        }
    }
}
