/// The package that `martlet plugin new` writes.
struct PluginTemplate {
    let name: PluginName
    /// The folder of the installed public API.
    let api: String

    var files: [(path: String, text: String)] {
        [
            ("Package.swift", manifest), (".gitignore", ".build/\n"), ("README.md", readme),
            ("Sources/\(name.type)/\(name.type)Provider.swift", provider),
            ("Sources/\(name.type)Plugin/Entry.swift", entry),
            ("Tests/\(name.type)Tests/\(name.type)ProviderTests.swift", tests),
        ]
    }

    private var manifest: String {
        """
        // swift-tools-version: 6.2
        import PackageDescription

        /// The public API of the installed gateway.
        let api = Context.environment["MARTLET_API"] ?? \(Self.literal(api))

        let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .unsafeFlags(["-I", api + "/modules"])]

        let package = Package(
            name: "\(name.type)",
            products: [.library(name: "\(name.type)", type: .dynamic, targets: ["\(name.type)Plugin"])],
            targets: [
                // The provider; tests use it without the gateway.
                .target(name: "\(name.type)", swiftSettings: settings),
                // The library's entry. The gateway has everything that the library needs, Swift's own library included.
                .target(
                    name: "\(name.type)Plugin",
                    dependencies: ["\(name.type)"],
                    swiftSettings: settings,
                    linkerSettings: [.unsafeFlags(["-resource-dir", api + "/link", "-no-toolchain-stdlib-rpath"])]),
                .testTarget(
                    name: "\(name.type)Tests",
                    dependencies: ["\(name.type)"],
                    swiftSettings: settings,
                    linkerSettings: [
                        .unsafeFlags(["-L", api + "/lib", "-lMartlet", "-Xlinker", "-rpath", "-Xlinker", api + "/lib"])
                    ]),
            ])

        """
    }

    private var readme: String {
        """
        # \(name.type)

        A provider of kind `\(name.kind)` for Martlet, in a shared library.

        | Command | Does |
        |---|---|
        | `swift test` | runs the tests, without the gateway |
        | `swift build -c release` | builds `.build/release/lib\(name.type).so` |

        ```yaml
        plugins:
          - path: lib/lib\(name.type).so
        providers:
          \(name.kind):
            kind: \(name.kind)
            subject: alice
            token_file: token
        ```

        Build it with the same Swift toolchain as the gateway. `MARTLET_API` names another folder of the public API.

        """
    }

    private var entry: String {
        """
        import \(name.type)
        import MartletProvider

        /// The gateway calls this once, after it has loaded the library.
        @c(martlet_plugin) public func martletPlugin() -> UnsafeRawPointer {
            MartletPlugin.export { registry in registry.register(\(name.type)Provider.self) }
        }

        """
    }

    private var provider: String {
        """
        public import MartletConfig
        internal import MartletCore
        private import MartletCrypto
        public import MartletProvider

        /// Whoever presents the token is the subject: `Authorization: Bearer \(name.kind)_…`.
        public struct \(name.type)Provider: Authenticating {
            public struct Configuration: ConfigurationDecodable {
                let subject: String
                let token: Secret

                public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
                    subject = reader.optional("subject", default: "\(name.kind)")
                    token = try reader.secret("token").value  // `token` or `token_file`
                }
            }

            public static let kind: ProviderKind = "\(name.kind)"
            public let accepts: [CredentialSource] = [.bearerPrefix("\(name.kind)_")]
            private let configuration: Configuration

            public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

            public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
                self.configuration = configuration
            }

            public func authenticate(
                _ credential: Credential, in context: AuthenticationContext
            ) async throws(AuthenticationError) -> Identity {
                let expected = configuration.token.withBytes { Array("\(name.kind)_".utf8) + $0 }
                guard credential.withBytes({ ConstantTime.areEqual($0, expected) }) else {
                    throw .rejected("\(name.kind).wrong_token")
                }
                return Identity(
                    providerSubject: configuration.subject, issuer: "\(name.kind)", claims: [:], authTime: context.now,
                    issuedAt: context.now, expiresAt: context.now.advanced(bySeconds: 60))
            }
        }

        """
    }

    private var tests: String {
        """
        import \(name.type)
        import MartletConfig
        import MartletCore
        import MartletProvider
        import Testing

        @Suite struct \(name.type)ProviderTests {
            /// A provider with this block, as the gateway would make it.
            static func provider(_ block: String) throws -> \(name.type)Provider {
                var diagnostics = Diagnostics()
                let node = ConfigurationNode.parse(
                    Array(block.utf8), file: "config.yaml", environment: { _ in nil }, into: &diagnostics)
                let configuration = try #require(
                    node?.decode(\(name.type)Provider.Configuration.self, title: "provider", into: &diagnostics),
                    "\\(diagnostics)")
                return try \(name.type)Provider(
                    configuration, context: .detached("\(name.kind)", clock: .system, hasUsers: false))
            }

            static func authenticate(_ token: String) async throws -> Identity {
                try await provider("{ subject: alice, token: secret }").authenticate(
                    Credential(bearer: Array(token.utf8)),
                    in: AuthenticationContext(now: Clock.system.unixTime, deadline: .never))
            }

            @Test func identifiesWhoHasTheToken() async throws {
                #expect(try await Self.authenticate("\(name.kind)_secret").providerSubject == "alice")
            }

            @Test(arguments: ["\(name.kind)_", "\(name.kind)_secre", "\(name.kind)_secrets", "secret", ""])
            func rejectsAnyOtherToken(token: String) async throws {
                let error = await #expect(throws: AuthenticationError.self) { try await Self.authenticate(token) }
                #expect(error?.code == "\(name.kind).wrong_token")
            }
        }

        """
    }

    /// A Swift literal of any text.
    private static func literal(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar in
            switch scalar {
            case "\\", "\"": "\\\(scalar)"
            default: scalar.value < 0x20 ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
            }
        }
        return "\"\(escaped.joined())\""
    }
}
