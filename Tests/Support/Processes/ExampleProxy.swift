import Foundation

/// A real proxy before a gateway, with its configuration of the examples.
package final class ExampleProxy: Sendable {
    /// The proxies that have an example.
    package enum Kind: String, Sendable, CaseIterable {
        case nginx, caddy, haproxy, apache, envoy, envoyGRPC

        /// Those whose program is installed; the others are named on the standard error.
        package static let installed = allCases.filter { kind in
            if (try? kind.executable) != nil { return true }
            FileHandle.standardError.write(Data("skipped: \(kind.program) is not installed\n".utf8))
            return false
        }

        private var program: String {
            switch self {
            case .apache: "apache2"
            case .envoyGRPC: "envoy"
            case .nginx, .caddy, .haproxy, .envoy: rawValue
            }
        }

        /// Envoy stands in the folder that `.tools/envoy` makes, unless it is installed.
        fileprivate var executable: String {
            get throws {
                let own = ExampleProxy.repository + "/.envoy/" + program
                return FileManager.default.isExecutableFile(atPath: own) ? own : try Executable.named(program)
            }
        }

        fileprivate var folder: String { self == .envoyGRPC ? "envoy" : rawValue }

        /// The files of the example; the program is started with the first.
        fileprivate var files: [String] {
            switch self {
            case .nginx: ["nginx.conf"]
            case .caddy: ["Caddyfile"]
            case .haproxy: ["haproxy.cfg", "martlet.lua"]
            case .apache: ["martlet.conf", "martlet.lua"]
            case .envoy: ["http.yaml"]
            case .envoyGRPC: ["grpc.yaml"]
            }
        }

        /// What clients get while the gateway is down.
        package var statusWithoutGateway: Int {
            switch self {
            case .nginx: 500
            case .caddy: 502
            case .haproxy, .apache, .envoy, .envoyGRPC: 503
            }
        }
    }

    package static let repository = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../..").standardizedFileURL.path

    package let endpoint: Endpoint
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// Starts the proxy and waits until it accepts.
    /// - Parameters:
    ///   - gateway: where the gateway listens, instead of port 8080.
    ///   - api: where the API listens, instead of port 9000.
    package init(_ kind: Kind, gateway: Endpoint, api: Endpoint) throws {
        let folder = try TemporaryFolder()
        let port = try refusedPort()
        let endpoint = Endpoint.loopback(port)
        let addresses = [
            ("127.0.0.1:8000", "\(endpoint)"), ("http://:8000", "http://:\(port)"), ("127.0.0.1:8080", "\(gateway)"),
            ("127.0.0.1:9000", "\(api)"), (#""127.0.0.1", 8080"#, #""127.0.0.1", \#(gateway.port)"#),
            ("port_value: 8000", "port_value: \(port)"), ("port_value: 8080", "port_value: \(gateway.port)"),
            ("port_value: 9000", "port_value: \(api.port)"),
        ]
        (self.folder, self.endpoint) = (folder, endpoint)
        var found: Set<Substring> = []
        for name in kind.files {
            var text = try String(
                contentsOfFile: "\(Self.repository)/Examples/forward-auth/\(kind.folder)/\(name)", encoding: .utf8)
            for (written, used) in addresses where text.contains(written) {
                text = text.replacingOccurrences(of: written, with: used)
                found.insert(written.suffix(4))
            }
            try folder.write(kind.adapt(text, to: folder.path), to: name)
        }
        guard found.count == 3 else { throw TestFailure("the example has the ports \(found) alone") }
        let file = folder.file(kind.files[0])
        let arguments: [String] =
            switch kind {
            case .nginx: ["-c", file, "-p", folder.path, "-e", folder.file("error.log")]
            case .caddy: ["run", "--adapter", "caddyfile", "--config", file]
            case .haproxy: ["-db", "-f", file]
            case .apache: ["-X", "-d", folder.path, "-f", file]
            case .envoy, .envoyGRPC: ["-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"]
            }
        if kind == .apache {
            // Started by root it reads its script as another user.
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: folder.file("martlet.lua"))
        }
        process = try ChildProcess(
            try kind.executable, arguments,
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
        case .caddy, .envoy, .envoyGRPC: return text
        case .apache:
            guard text.contains("<VirtualHost") else { return text }
            let modules = ["mpm_event", "authz_core", "alias", "headers", "lua", "proxy", "proxy_http"].map {
                "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so\n"
            }
            let own =
                modules.joined() + "ServerName localhost\nPidFile \(folder)/apache.pid\nDefaultRuntimeDir \(folder)\n"
                + "ErrorLog \(folder)/error.log\n" + (geteuid() == 0 ? "User www-data\nGroup www-data\n" : "")
            return own + text.replacingOccurrences(of: "/etc/apache2/", with: "\(folder)/")
        case .haproxy: return text.replacingOccurrences(of: "lua-load ", with: "lua-load \(folder)/")
        }
    }
}
