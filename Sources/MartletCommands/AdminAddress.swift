private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer

/// The admin listener of a running gateway, and what its requests prove.
struct AdminTarget: Sendable {
    /// `http://127.0.0.1:9901`, without a path.
    let url: String
    /// The path of a Unix socket, which is connected to instead of the URL's host.
    var socket: String?
    /// Certificates to trust instead of the system's authorities.
    var authorityFile: String?
    /// Whether the server proves one of these certificates, under whatever name it is reached.
    var isPinned = false
    /// The value of `Host`; `nil` is that of the URL.
    var host: String?
    var token: Secret?
    /// Whether the listener is known to require a client certificate, which commands do not have.
    var requiresCertificate = false

    var name: String { socket.map { "unix:\($0)" } ?? url }

    var fields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        if let host { fields.append(("Host", host)) }
        if let token {
            token.withBytes { fields.append(("Authorization", "Bearer \(String(decoding: $0, as: UTF8.self))")) }
        }
        return fields
    }
}

/// Finds the admin listener: that of `--admin`, or that of a configuration; and the token for it.
struct AdminAddress {
    static let options: [CommandOption] = [
        .config,
        .value(
            "admin", "URL", .url,
            "the admin listener, such as http://127.0.0.1:9901 or unix:/run/martlet-admin.sock, instead of the one in "
                + "the configuration"),
        .value("address", "ADDRESS", .address, "another name of --admin"),
        .value(
            "token-file", "FILE", .file,
            "the admin token; default: that of the configuration, or $MARTLET_ADMIN_TOKEN_FILE"),
    ]
    /// What exit code 78 of their commands means.
    static let configurationExit = "the configuration has no admin listener, or admin: in it has errors"
    private static let tokenVariable = "MARTLET_ADMIN_TOKEN_FILE"

    var isGiven: Bool { address != nil }

    /// Whether its documents are printed as they are.
    let printsJSON: Bool
    private let isNamed: Bool
    private let path: String
    private let address: String?
    private let tokenFile: String?
    private let registry: ProviderRegistry

    init(_ options: Options, _ registry: ProviderRegistry) {
        isNamed = options["config"] != nil
        path = ConfigurationPath.of(options)
        address = options["admin"] ?? options["address"]
        tokenFile = options["token-file"]
        printsJSON = options.has("json")
        self.registry = registry
    }

    /// - Throws: `server.bad_address`, `server.token_unreadable`, `server.no_admin`, or `server.no_configuration`,
    ///   whose diagnostics were printed.
    func target() throws(StartError) -> AdminTarget {
        let admin = address == nil || isNamed ? try configured() : nil
        var target: AdminTarget
        if let address {
            target = try AdminAddress.target(of: address)
            // A gateway that is reached by another way presents the same certificate.
            if target.url.hasPrefix("https:"), let tls = admin?.tls { target.pin(tls) }
        } else if let admin {
            target = try AdminAddress.target(of: admin)
        } else {
            throw AdminAddress.noAdmin
        }
        if let file = tokenFile {
            target.token = try AdminAddress.token(in: file)
        } else if let token = admin?.token {
            target.token = token.value
        } else if let file = SystemInformation.environment(AdminAddress.tokenVariable), !file.isEmpty {
            target.token = try AdminAddress.token(in: file)
        }
        return target
    }

    // MARK: Addresses

    /// The listener of a URL, `unix:/path`, or an address such as `127.0.0.1:9901`.
    private static func target(of text: String) throws(StartError) -> AdminTarget {
        for scheme in ["http://", "https://"] where text.hasPrefix(scheme) {
            var rest = text.dropFirst(scheme.count)
            if rest.hasSuffix("/") { rest = rest.dropLast() }
            let isAuthority = rest.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || "-._:[]".utf8.contains(byte)
            }
            guard isAuthority, URLText(scheme + rest) != nil else { throw badAddress }
            return AdminTarget(url: scheme + rest)
        }
        guard let address = SocketAddress(text) else { throw badAddress }
        return try target(of: address, isSecure: false)
    }

    /// Its Unix socket, for those who may open it: there a change needs no token.
    private static func target(of admin: AdminConfiguration) throws(StartError) -> AdminTarget {
        if let socket = admin.socket?.value, case .unix(let path) = socket, unsafe access(path, W_OK) == 0 {
            return try target(of: socket, isSecure: false)
        }
        var target = try target(of: admin.address.value, isSecure: admin.tls != nil)
        if let tls = admin.tls { target.pin(tls) }
        return target
    }

    private static func target(of address: SocketAddress, isSecure: Bool) throws(StartError) -> AdminTarget {
        let scheme = isSecure ? "https" : "http"
        switch address {
        case .ip(_, port: 0):
            throw StartError(
                code: "server.bad_address", message: "the admin port is chosen at startup; pass it as --admin",
                exit: .usage)
        case .ip(let host, let port):
            var target = AdminTarget(url: "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)")
            target.host = "localhost"
            return target
        case .unix(let path):
            var target = AdminTarget(url: "\(scheme)://localhost")
            target.socket = path
            return target
        case .descriptor:
            throw StartError(
                code: "server.bad_address",
                message: "the admin listener is an inherited socket; pass its address as --admin", exit: .usage)
        }
    }

    private static var badAddress: StartError {
        StartError(
            code: "server.bad_address",
            message: "--admin requires a URL such as http://127.0.0.1:9901, or unix:/run/martlet-admin.sock",
            exit: .usage)
    }

    // MARK: Configuration

    private func configured() throws(StartError) -> AdminConfiguration {
        let (admin, diagnostics, otherErrors) = ConfigurationText.admin(path, registry)
        guard !diagnostics.hasErrors else {
            Output.report(diagnostics)
            throw StartError(
                code: "server.no_configuration", message: "the admin listener cannot be read from the configuration",
                exit: .configuration)
        }
        if otherErrors > 0 {
            Output.error(
                "warning: \(TerminalText.escaped(path)) has errors, which 'martlet check' shows; only admin: is used\n")
        }
        guard let admin else { throw AdminAddress.noAdmin }
        return admin
    }

    private static var noAdmin: StartError {
        StartError(code: "server.no_admin", message: "the configuration has no admin listener", exit: .configuration)
    }

    private static func token(in file: String) throws(StartError) -> Secret {
        guard let token = ConfigurationReader.secret(in: FilePath(file)) else {
            throw StartError(
                code: "server.token_unreadable", message: "the token cannot be read from \(TerminalText.escaped(file))",
                exit: .usage)
        }
        guard token.withBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
            throw StartError(
                code: "server.token_unreadable",
                message:
                    "\(TerminalText.escaped(file)) is no token: it must be visible ASCII characters, without spaces",
                exit: .usage)
        }
        return token
    }
}

extension CommandGrammar {
    mutating func addAdminOptions() {
        options += AdminAddress.options
        alternatives += [.atMostOne("admin", "address")]
    }
}

extension AdminTarget {
    /// Trusts the certificates of a listener, and no others.
    fileprivate mutating func pin(_ tls: ListenerTLS) {
        guard let certificate = tls.certificates.first?.certificate.value else { return }
        (authorityFile, isPinned) = (certificate, true)
        requiresCertificate = tls.clientAuthentication == .required
    }
}
