import Foundation

/// A real proxy before a gateway, with its configuration of the examples.
package final class ExampleProxy: Sendable {
    /// The proxies that have an example.
    package enum Kind: String, Sendable, CaseIterable {
        case nginx, caddy, haproxy

        /// Those whose program is installed; the others are named on the standard error.
        package static let installed = allCases.filter { kind in
            if (try? Executable.named(kind.rawValue)) != nil { return true }
            FileHandle.standardError.write(Data("skipped: \(kind.rawValue) is not installed\n".utf8))
            return false
        }

        /// The files of the example; the program is started with the first.
        fileprivate var files: [String] {
            switch self {
            case .nginx: ["nginx.conf"]
            case .caddy: ["Caddyfile"]
            case .haproxy: ["haproxy.cfg", "martlet.lua"]
            }
        }

        /// What clients get while the gateway is down.
        package var statusWithoutGateway: Int {
            switch self {
            case .nginx: 500
            case .caddy: 502
            case .haproxy: 503
            }
        }
    }

    package let endpoint: Endpoint
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// Starts the proxy and waits until it accepts.
    /// - Parameters:
    ///   - examples: the folder of the examples.
    ///   - gateway: where the gateway listens, instead of port 8080.
    ///   - api: where the API listens, instead of port 9000.
    package init(_ kind: Kind, examples: String, gateway: Endpoint, api: Endpoint) throws {
        let folder = try TemporaryFolder()
        let port = try refusedPort()
        let endpoint = Endpoint.loopback(port)
        let addresses = [
            ("127.0.0.1:8000", "\(endpoint)"), ("http://:8000", "http://:\(port)"), ("127.0.0.1:8080", "\(gateway)"),
            ("127.0.0.1:9000", "\(api)"),
        ]
        (self.folder, self.endpoint) = (folder, endpoint)
        var found: Set<String> = []
        for name in kind.files {
            var text = try String(
                contentsOfFile: "\(examples)/\(kind.rawValue)/\(name)", encoding: .utf8)
            for (written, used) in addresses where text.contains(written) {
                text = text.replacingOccurrences(of: written, with: used)
                found.insert(written)
            }
            try folder.write(kind.adapt(text, to: folder.path), to: name)
        }
        guard found.count == 3 else { throw TestFailure("the example has the addresses \(found) alone") }
        let file = folder.file(kind.files[0])
        let arguments: [String] =
            switch kind {
            case .nginx: ["-c", file, "-p", folder.path, "-e", folder.file("error.log")]
            case .caddy: ["run", "--adapter", "caddyfile", "--config", file]
            case .haproxy: ["-db", "-f", file]
            }
        process = try ChildProcess(
            try Executable.named(kind.rawValue), arguments,
            environment: ["HOME": folder.path, "XDG_DATA_HOME": folder.path, "XDG_CONFIG_HOME": folder.path],
            output: folder, name: kind.rawValue)
        try waitUntil("\(kind) listens on \(endpoint)") { (try? RawSocket(connectingTo: endpoint)) != nil }
    }

    deinit { process.kill(15) }

    /// What the proxy wrote.
    package var errors: String {
        let log = FileManager.default.contents(atPath: folder.file("error.log")) ?? Data()
        return String(decoding: log, as: UTF8.self) + process.errorOutput + process.output
    }

    /// One request on a connection of its own.
    package func exchange(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) throws -> HTTPMessage {
        try HTTPClient(to: endpoint).exchange(method, target, fields, body: body)
    }
}

extension ExampleProxy.Kind {
    /// The text of a file, with the paths of a test.
    fileprivate func adapt(_ text: String, to folder: String) -> String {
        switch self {
        case .nginx:
            let names = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            let paths = names.map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
            let own = "daemon off; master_process off; worker_processes 1; pid \(folder)/nginx.pid;\n"
            return own + text.replacingOccurrences(of: "\nhttp {", with: "\nhttp { access_log off; \(paths)")
        case .caddy: return text
        case .haproxy: return text.replacingOccurrences(of: "lua-load ", with: "lua-load \(folder)/")
        }
    }
}
