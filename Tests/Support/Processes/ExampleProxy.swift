import Foundation

/// A real proxy before a gateway, with its configuration of the examples.
package final class ExampleProxy: Sendable {
    /// The proxies that have an example.
    package enum Kind: String, Sendable, CaseIterable {
        case nginx, caddy, haproxy, apache, envoy, envoyGRPC, traefik
        /// Debian's, which is much older than the other one.
        case oldCaddy
        /// What cannot run here, with the proxy that does its work: nginx with what the controller makes of annotations,
        /// and Envoy with nothing but the calls that a gateway makes.
        case ingressNginx, gatewayAPI

        /// Those whose program is installed.
        package static let available = allCases.filter { (try? $0.executable) != nil }

        /// The same, as far as their examples are complete; the others are named on the standard error.
        package static let installed = allCases.filter { kind in
            guard kind != .ingressNginx, kind != .gatewayAPI else { return false }
            if available.contains(kind) { return true }
            FileHandle.standardError.write(Data("skipped: \(kind.program) is not installed\n".utf8))
            return false
        }

        private var program: String {
            switch self {
            case .apache: "apache2"
            case .envoyGRPC, .gatewayAPI: "envoy"
            case .ingressNginx: "nginx"
            case .oldCaddy: "caddy"
            case .nginx, .caddy, .haproxy, .envoy, .traefik: rawValue
            }
        }

        /// Some stand in the folder that `.tools/proxies` makes.
        fileprivate var executable: String {
            get throws {
                let own = ExampleProxy.repository + "/.proxies/" + program
                switch self {
                case .caddy, .envoy, .envoyGRPC, .gatewayAPI, .traefik:
                    guard FileManager.default.isExecutableFile(atPath: own) else {
                        throw TestFailure("\(program) is not in .proxies")
                    }
                    return own
                case .nginx, .oldCaddy, .haproxy, .apache, .ingressNginx: return try Executable.named(program)
                }
            }
        }

        fileprivate var folder: String {
            switch self {
            case .envoyGRPC, .gatewayAPI: "envoy"
            case .oldCaddy: "caddy"
            case .ingressNginx: "ingress-nginx"
            case .nginx, .caddy, .haproxy, .apache, .envoy, .traefik: rawValue
            }
        }

        /// The files of the example; the program is started with the first.
        fileprivate var files: [String] {
            switch self {
            case .nginx: ["nginx.conf"]
            case .caddy, .oldCaddy: ["Caddyfile"]
            case .haproxy: ["haproxy.cfg", "martlet.lua"]
            case .apache: ["martlet.conf", "martlet.lua"]
            case .envoy: ["http.yaml"]
            case .envoyGRPC, .gatewayAPI: ["grpc.yaml"]
            case .traefik: ["dynamic.yaml"]
            case .ingressNginx: ["ingress.yaml"]
            }
        }

        /// What clients get while the gateway is down.
        package var statusWithoutGateway: Int {
            switch self {
            case .nginx, .ingressNginx, .traefik: 500
            case .caddy, .oldCaddy: 502
            case .haproxy, .apache, .envoy, .envoyGRPC, .gatewayAPI: 503
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
    ///   - adds: whether `X-User-Id` is added wherever the example has the identity headers, as it says.
    package init(_ kind: Kind, gateway: Endpoint, api: Endpoint, addsName adds: Bool = false) throws {
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
            if adds { text = try kind.addName(to: text, name) }
            text = kind.complete(text)
            for (written, used) in addresses where text.contains(written) {
                text = text.replacingOccurrences(of: written, with: used)
                found.insert(written.suffix(4))
            }
            try folder.write(kind.adapt(text, to: folder.path), to: name)
        }
        if kind == .traefik { try folder.write(Kind.traefikSetup(port: port, folder.path), to: "traefik.yaml") }
        // Traefik's own address is not in the example.
        guard found.count == (kind == .traefik ? 2 : 3) else {
            throw TestFailure("the example has the ports \(found) alone")
        }
        let file = folder.file(kind.files[0])
        let arguments: [String] =
            switch kind {
            case .nginx, .ingressNginx: ["-c", file, "-p", folder.path, "-e", folder.file("error.log")]
            case .caddy, .oldCaddy: ["run", "--adapter", "caddyfile", "--config", file]
            case .haproxy: ["-db", "-f", file]
            case .apache: ["-X", "-d", folder.path, "-f", file]
            case .traefik: ["--configFile=\(folder.file("traefik.yaml"))"]
            case .envoy, .envoyGRPC, .gatewayAPI:
                ["-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"]
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
        // Traefik listens before it has its configuration, and responds itself until then.
        guard kind == .traefik else { return }
        try waitUntil("\(kind) knows the gateway") {
            (try? exchange("GET", "/auth/none"))?.text.contains("page not found") == false
        }
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
        case .nginx, .ingressNginx:
            let names = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            let paths = names.map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
            let own = "daemon off; master_process off; worker_processes 1; pid \(folder)/nginx.pid;\n"
            return own + text.replacingOccurrences(of: "\nhttp {", with: "\nhttp { access_log off; \(paths)")
        case .caddy, .oldCaddy, .envoy, .envoyGRPC, .gatewayAPI, .traefik: return text
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

// MARK: - Names that routes set

extension ExampleProxy.Kind {
    /// How a name is written in examples, and how that of a route is.
    private static let spellings = [
        ("auth-*email", "user-*id"), ("x-auth-email", "x-user-id"), ("auth_email", "user_id"),
        ("Auth-Email", "User-Id"), ("AuthEmail", "UserId"),
    ]

    /// Adds `X-User-Id` as a reader of the example would: behind `X-Auth-Email` in a list, and as a line of its own.
    fileprivate func addName(to text: String, _ file: String) throws -> String {
        var count = 0
        let lines = text.components(separatedBy: "\n").flatMap { line -> [String] in
            guard !line.hasPrefix("#"), let (known, new) = Self.spellings.first(where: { line.contains($0.0) }) else {
                return [line]
            }
            count += 1
            if line.contains("|auth-*email") {
                return [line.replacingOccurrences(of: known, with: "\(known)|\(new)")]
            }
            if line.contains("\"x-auth-email\",") {
                return [line.replacingOccurrences(of: "\"\(known)\",", with: "\"\(known)\", \"\(new)\",")]
            }
            if line.contains("X-Auth-Email,") {
                return [line.replacingOccurrences(of: "X-Auth-Email,", with: "X-Auth-Email,X-User-Id,")]
            }
            return [line, Self.spellings.reduce(line) { $0.replacingOccurrences(of: $1.0, with: $1.1) }]
        }
        guard count > 0 || self == .gatewayAPI || file.hasSuffix(".conf") || file.hasSuffix(".cfg") else {
            throw TestFailure("\(file) names no identity header")
        }
        return lines.joined(separator: "\n")
    }

    /// The configuration of the proxy below, where the example is one for something above it.
    fileprivate func complete(_ text: String) -> String {
        switch self {
        case .ingressNginx: return Self.nginx(ofIngress: text)
        case .gatewayAPI:
            // No more than what the gateway asks: nothing is deleted by name.
            var parts = text.components(separatedBy: "                  - name: envoy.filters.http.")
            parts.removeAll { $0.hasPrefix("header_mutation") }
            return parts.joined(separator: "                  - name: envoy.filters.http.")
                .replacingOccurrences(
                    of: "request_headers_to_remove: [authorization, dpop, x-api-key]",
                    with: "request_headers_to_remove: []")
        case .nginx, .caddy, .oldCaddy, .haproxy, .apache, .envoy, .envoyGRPC, .traefik: return text
        }
    }

    /// What ingress-nginx makes of annotations, by its documentation and its template.
    private static func nginx(ofIngress text: String) -> String {
        var annotations: [String: String] = [:]
        var key = ""
        for line in text.components(separatedBy: "\n") {
            if let range = line.range(of: "    nginx.ingress.kubernetes.io/"), range.lowerBound == line.startIndex {
                let parts = line[range.upperBound...].split(separator: ":", maxSplits: 1)
                key = String(parts[0])
                annotations[key] = parts[1].trimmingCharacters(in: .whitespaces)
                if annotations[key] == "|" { annotations[key] = "" }
            } else if line.hasPrefix("      proxy_set_header") {
                annotations[key, default: ""] += line + "\n"
            } else if !line.hasPrefix("    #") {
                key = ""
            }
        }
        let names = (annotations["auth-response-headers"] ?? "").split(separator: ",").map(String.init)
        let sets = names.enumerated().map { index, name in
            let variable = name.lowercased().replacingOccurrences(of: "-", with: "_")
            return "auth_request_set $authHeader\(index) $upstream_http_\(variable);\n"
                + "proxy_set_header '\(name)' $authHeader\(index);\n"
        }
        let url = (annotations["auth-url"] ?? "").replacingOccurrences(
            of: "martlet.auth.svc.cluster.local:8080", with: "127.0.0.1:8080")
        return """
            events { worker_connections 1024; }

            http {
                server {
                    listen 127.0.0.1:8000;
                    proxy_http_version 1.1;
                    location = /_external-auth {
                        internal;
                        proxy_pass_request_body off;
                        proxy_set_header Content-Length "";
                        proxy_method \(annotations["auth-method"] ?? "GET");
                        proxy_set_header Host $host;
                        proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
                        proxy_set_header X-Original-Method $request_method;
                        proxy_set_header X-Real-IP $remote_addr;
                        proxy_set_header X-Forwarded-For $remote_addr;
                        \(annotations["auth-snippet"] ?? "")
                        proxy_pass \(url);
                    }
                    location / {
                        auth_request /_external-auth;
                        \(sets.joined())
                        proxy_set_header Host $host;
                        proxy_set_header X-Real-IP $remote_addr;
                        proxy_set_header X-Forwarded-For $remote_addr;
                        \(annotations["configuration-snippet"] ?? "")
                        proxy_pass http://127.0.0.1:9000;
                    }
                }
            }
            """
    }

    /// What of Traefik's configuration is not in the example.
    fileprivate static func traefikSetup(port: UInt16, _ folder: String) -> String {
        """
        global: { checkNewVersion: false, sendAnonymousUsage: false }
        entryPoints: { web: { address: "127.0.0.1:\(port)" } }
        providers: { file: { filename: \(folder)/dynamic.yaml, watch: false } }
        log: { level: INFO }
        """
    }
}
