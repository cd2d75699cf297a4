import Foundation
internal import Glibc

/// The built gateway, running with a configuration of the test's own.
package final class Gateway: Sendable {
    package let folder: TemporaryFolder
    package let process: ChildProcess
    private let listeners = Box<[String: [Endpoint]]>([:])

    /// Starts the gateway and waits until it has said where it listens.
    /// - Parameters:
    ///   - configuration: the whole of `config.yaml`.
    ///   - files: more files beside it.
    ///   - program: instead of the executable that was built.
    ///   - launcher: a command line that ends in the start of the gateway's.
    package init(
        _ configuration: String, files: [String: String] = [:], environment: [String: String] = [:],
        arguments: [String] = [], in folder: TemporaryFolder? = nil, program: String? = nil, launcher: [String] = []
    ) throws {
        self.folder = try folder ?? TemporaryFolder()
        for (name, text) in files { try self.folder.write(text, to: name) }
        let (configuration, socket) = Self.withOwnSocket(configuration, in: self.folder)
        operators = .unix(socket)
        let path = try self.folder.write(configuration, to: "config.yaml")
        let command = launcher + [try program ?? Executable.martlet(), "run", "--config", path] + arguments
        process = try ChildProcess(
            command[0], Array(command.dropFirst()), environment: environment,
            output: self.folder, name: "martlet-\(UInt32.random(in: 0 ... .max))")
        let wanted = configuration.contains("\nadmin:") ? ["public", "admin"] : ["public"]
        try waitUntil("the gateway listens") {
            guard process.poll() == nil else { throw TestFailure("the gateway ended at its start: \(everything)") }
            readListeners()
            return wanted.allSatisfy { listeners.value[$0] != nil }
        }
    }

    /// The configuration, with a Unix socket of the admin listener that no other gateway in the folder has.
    private static func withOwnSocket(_ text: String, in folder: TemporaryFolder) -> (text: String, path: String) {
        let name = text.split(separator: "socket: unix:").dropFirst().first?.prefix { $0 != "\n" } ?? "none"
        guard FileManager.default.fileExists(atPath: folder.file(String(name))) else {
            return (text, folder.file(String(name)))
        }
        let own = "\(UInt32.random(in: 0 ... .max)).sock"
        return (text.replacing("socket: unix:\(name)", with: "socket: unix:\(own)"), folder.file(own))
    }

    /// The first public listener.
    package var endpoint: Endpoint { endpoints.first ?? .loopback(0) }
    /// Every public listener, in the order in which the gateway named them.
    package var endpoints: [Endpoint] { listeners.value["public"] ?? [] }
    /// The listener of `/readyz` and `/metrics`.
    package var admin: Endpoint { listeners.value["admin"]?.first ?? .loopback(0) }
    /// Where changes need no credential: the Unix socket of the admin listener.
    package let operators: Endpoint
    /// All that the gateway wrote, on both outputs.
    package var everything: String { process.output + process.errorOutput }

    /// Every log line so far that is a JSON object.
    package var log: [LogLine] { everything.split(separator: "\n").compactMap { LogLine(String($0)) } }

    /// A connection to the public listener.
    package func connect() throws -> HTTPClient { try HTTPClient(to: endpoint) }

    /// One request on a connection of its own.
    package func exchange(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) throws -> HTTPMessage {
        try connect().exchange(method, target, fields, body: body)
    }

    /// One GET on a connection of its own.
    package func get(_ target: String, _ fields: [(String, String)] = []) throws -> HTTPMessage {
        try exchange("GET", target, fields)
    }

    /// One GET at the admin listener.
    package func askAdmin(_ target: String) throws -> HTTPMessage {
        try HTTPClient(to: admin).exchange("GET", target)
    }

    /// Sends bytes on a connection of their own and reads one response and whether the connection ends behind it.
    package func raw(_ bytes: String) throws -> (response: HTTPMessage, isClosed: Bool) {
        let client = try connect()
        try client.send(bytes)
        let response = try client.response()
        return (response, client.socket.isEnded(within: .seconds(2)))
    }

    /// Puts a new configuration in place and asks the gateway to read it.
    package func reload(_ configuration: String) throws {
        try folder.write(configuration, to: "config.yaml")
        process.kill(SIGHUP)
    }

    /// Asks the gateway to leave and expects that it does so in good order.
    package func stop(within limit: Duration = .seconds(15)) throws {
        guard process.poll() == nil else { return try expectGoodEnd() }
        process.kill(SIGTERM)
        _ = try process.wait(within: limit)
        try expectGoodEnd()
    }

    private func expectGoodEnd() throws {
        let ending = process.poll()
        guard ending == .exited(0) else {
            throw TestFailure("the gateway ended with \(String(describing: ending)): \(everything)")
        }
    }

    private func readListeners() {
        var found: [String: [Endpoint]] = [:]
        for line in log where line["event"] == "listening" {
            guard let name = line["listener"], let endpoint = try? Endpoint(text: line["address"] ?? "") else {
                continue
            }
            found[name, default: []].append(endpoint)
        }
        listeners.withLock { $0 = found }
    }
}

/// One line of the log.
package struct LogLine: Sendable, CustomStringConvertible {
    package let text: String
    /// Its members; numbers and booleans as text.
    package let fields: [String: String]

    package init?(_ text: String) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
            return nil
        }
        self.text = text
        fields = object.mapValues { "\($0)" }
    }

    package subscript(name: String) -> String? { fields[name] }
    package var description: String { text }
}

/// Runs a test against a gateway of its own, which has to leave in good order behind it.
package func withMartlet<Result>(
    _ configuration: String, files: [String: String] = [:], environment: [String: String] = [:],
    _ body: (Gateway) throws -> Result
) throws -> Result {
    let gateway = try Gateway(configuration, files: files, environment: environment)
    let result: Result
    do {
        result = try body(gateway)
    } catch {
        throw TestFailure("\(error)\n--- the gateway wrote:\n\(gateway.everything.suffix(6000))")
    }
    try gateway.stop()
    return result
}
