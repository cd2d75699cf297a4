// swift-tools-version: 6.2
import PackageDescription

/// What every target of ours is compiled with: no warning, no unmarked unsafe operation, no import that is not declared.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// Public modules are compiled for library evolution, so that a plugin of an earlier version still fits; the optimizer
/// of this package looks through it. Not where the package is a dependency, which may not have such flags.
let evolving: [SwiftSetting] =
    Context.packageDirectory.contains("/checkouts/")
    ? []
    : [
        .unsafeFlags(["-enable-library-evolution", "-no-verify-emitted-module-interface"]),
        .unsafeFlags(["-package-cmo", "-allow-non-resilient-access"], .when(configuration: .release)),
    ]

/// Rooms of which nothing is on the path of a request are optimized for size. Not where the package is a dependency.
let small: [SwiftSetting] =
    Context.packageDirectory.contains("/checkouts/")
    ? [] : [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// What the executable defines is visible to plugins, which link against nothing: with a static Swift library, all of
/// that library as well, as an object file that stands before the archives (`.tools/release`).
let exporting: [LinkerSetting] = [
    .unsafeFlags(["-Xlinker", "--export-dynamic"]),
    .unsafeFlags(Context.environment["MARTLET_SWIFT_RUNTIME"].map { [$0, "-use-ld=lld"] } ?? []),
]

/// One room of `Sources/`: a library target with its unit tests in `Tests/Unit/<name>Tests`.
struct Room {
    let name: String
    let imports: [String]
    var folder = "Sources"
    /// The folder of the room, where it is not `<folder>/<name>`.
    var path: String?
    /// Whether plugins may import it.
    var isPublic = false
    /// Whether it is off the path of requests.
    var isSmall = false
    var tests = true
    var testImports: [String] = []
    /// Files beside the tests that they open by path.
    var testExcludes: [String] = []
    /// Folders beside the sources that something else compiles.
    var excludes: [String] = []

    var target: Target {
        .target(
            name: name, dependencies: imports.map { .byName(name: $0) }, path: path ?? "\(folder)/\(name)",
            exclude: excludes, swiftSettings: strict + (isPublic ? evolving : []) + (isSmall ? small : []))
    }

    /// What its tests import, the room among it.
    var testDependencies: [String] { [name, "MartletTesting"] + imports + testImports }

    var testTarget: Target {
        .testTarget(
            name: "\(name)Tests",
            dependencies: testDependencies.map { .byName(name: $0) },
            path: "Tests/Unit/\(name)Tests",
            exclude: testExcludes,
            swiftSettings: strict)
    }

    /// A plugin of this repository, which imports what a plugin of anybody may.
    static func plugin(_ name: String, _ more: [String] = [], folder: String = "Plugins") -> Room {
        Room(
            name: name,
            imports: ["MartletCore", "MartletJSON", "MartletCrypto", "MartletConfig", "MartletProvider"] + more,
            folder: folder, testImports: ["MartletProviderTesting"])
    }
}

/// The rooms from the bottom up: each imports only rooms that stand above it in this list.
let rooms: [Room] = [
    Room(name: "MartletCore", imports: ["CLinux", "CHeadScan"], isPublic: true),
    Room(name: "MartletJSON", imports: ["MartletCore"], isPublic: true),
    Room(name: "MartletHTTP", imports: ["MartletCore", "CHeadScan"], testImports: ["MartletCrypto"]),
    Room(
        name: "MartletConfig", imports: ["MartletCore", "MartletJSON", "CYAML", "CLinux"], isPublic: true,
        testExcludes: ["Fixtures"]),
    Room(name: "MartletCrypto", imports: ["MartletCore", "COpenSSL", "CArgon2", "CCrypt"], isPublic: true),
    Room(name: "MartletJOSE", imports: ["MartletCore", "MartletJSON", "MartletCrypto"], isPublic: true),
    Room(name: "MartletTLS", imports: ["MartletCore", "MartletCrypto", "COpenSSL"]),
    Room(name: "MartletHTTP2", imports: ["MartletCore", "MartletHTTP", "CNghttp2"]),
    Room(name: "MartletIO", imports: ["MartletCore", "MartletTLS", "CLinux"]),
    Room(name: "MartletFetch", imports: ["MartletCore", "CCurl", "CLinux"]),
    Room(name: "MartletTracing", imports: ["MartletCore", "MartletJSON", "MartletFetch", "CCurl", "CLinux"]),
    Room(
        name: "MartletRedis",
        imports: ["MartletCore", "MartletCrypto", "MartletIO", "MartletTLS", "MartletTracing", "CHiredis"]),
    Room(name: "MartletBrowser", imports: ["MartletCore", "MartletHTTP", "MartletCrypto"]),
    Room(
        name: "MartletProvider",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletCrypto", "MartletConfig", "MartletJOSE",
            "CMartletPlugin",
        ],
        isPublic: true),
    Room(name: "MartletTraffic", imports: ["MartletCore", "MartletProvider"]),
    Room(
        name: "MartletUpstreams",
        imports: [
            "MartletCore", "MartletHTTP", "MartletIO", "MartletFetch", "MartletTraffic", "CCares", "CLinux", "CCurl",
        ]),
    Room(
        name: "MartletProviderTesting", imports: ["MartletCore", "MartletJSON", "MartletProvider"],
        testImports: ["MartletConfig"]),
    Room(
        name: "MartletPlugins",
        imports: ["MartletCore", "MartletConfig", "MartletProvider", "CLinux", "CMartletPlugin"]
    ),
    Room(name: "MartletEvents", imports: ["MartletCore", "MartletJSON", "MartletCrypto"]),
    Room(name: "MartletAudit", imports: ["MartletCore", "MartletJSON", "MartletCrypto", "CLinux"]),
    Room(
        name: "MartletAccounts",
        imports: [
            "MartletCore", "MartletJSON", "MartletCrypto", "MartletIO", "MartletTracing", "MartletProvider",
            "MartletEvents", "CSQLite", "CPostgreSQL",
        ]),
    Room(
        name: "MartletSession",
        imports: ["MartletCore", "MartletJSON", "MartletCrypto", "MartletRedis", "MartletProvider", "CZlib"],
        testImports: ["MartletSessionTesting"]),
    Room(
        name: "MartletIdentities",
        imports: [
            "MartletCore", "MartletJSON", "MartletCrypto", "MartletConfig", "MartletProvider", "MartletEvents",
            "MartletAudit", "MartletAccounts", "MartletSession", "MartletIO",
        ],
        testImports: ["MartletSessionTesting"]),
    Room(
        name: "MartletRouter",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletJOSE",
            "MartletTraffic", "MartletProvider", "CPCRE2",
        ]),
    Room(
        name: "MartletResponder",
        imports: ["MartletCore", "MartletJSON", "MartletHTTP", "MartletIO", "MartletProvider"]),
    Room(
        name: "MartletAuthenticator",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletTraffic",
            "MartletTracing", "MartletProvider", "MartletRouter", "MartletResponder",
        ]),
    Room(name: "MartletPages", imports: ["MartletCore"], isSmall: true),
    Room(
        name: "MartletDecisions",
        imports: [
            "MartletCore", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletTLS", "MartletHTTP2", "MartletIO",
            "MartletBrowser", "MartletTraffic", "MartletUpstreams", "MartletTracing", "MartletProvider",
            "MartletRouter", "MartletResponder", "MartletAuthenticator",
        ],
        testImports: ["MartletDecisionsTesting"]),
    Room(
        name: "MartletProxy",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletTLS",
            "MartletHTTP2", "MartletIO", "MartletBrowser", "MartletTraffic", "MartletUpstreams", "MartletTracing",
            "MartletProvider", "MartletRouter", "MartletResponder", "MartletAuthenticator", "MartletDecisions",
            "CLinux",
        ],
        testImports: ["MartletDecisionsTesting"]),
    Room(
        name: "MartletExplain",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletIO", "MartletBrowser",
            "MartletTraffic",
            "MartletProvider", "MartletRouter", "MartletResponder", "MartletAuthenticator", "MartletDecisions",
            "MartletProxy",
        ],
        isSmall: true,
        testImports: ["MartletDecisionsTesting"]),
    .plugin("AppleProvider", ["MartletJOSE"]),
    .plugin("WeChatProvider"),
    .plugin("PasswordProvider"),
    .plugin("APIKeyProvider"),
    .plugin("HTTPProvider"),
    .plugin("MTLSProvider"),
    .plugin("OIDCProvider", ["MartletJOSE"]),
    .plugin("SignedProvider"),
    .plugin("KeyTable", folder: "Examples/Plugins"),
    .plugin("SignedPartner", folder: "Examples/Plugins"),
    Room(
        name: "BundledProviders",
        imports: [
            "MartletProvider", "APIKeyProvider", "AppleProvider", "HTTPProvider", "MTLSProvider", "OIDCProvider",
            "PasswordProvider", "SignedProvider", "WeChatProvider",
        ],
        folder: "Plugins",
        tests: false),
    Room(
        name: "MartletSignIn",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletProvider",
            "MartletEvents", "MartletAudit", "MartletAccounts", "MartletSession", "MartletIdentities",
            "MartletResponder", "MartletIO", "MartletBrowser", "MartletPages", "MartletTracing",
        ],
        isSmall: true,
        testImports: ["MartletSessionTesting"]),
    Room(
        name: "MartletSimulator",
        imports: ["MartletCore", "MartletJSON", "MartletCrypto", "MartletJOSE", "MartletResponder"],
        isSmall: true,
        testImports: ["MartletConfig", "MartletProvider", "WeChatProvider"]),
    Room(
        name: "MartletAdmin",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletIO", "MartletRedis",
            "MartletProvider", "MartletEvents", "MartletAudit", "MartletAccounts", "MartletSession",
            "MartletIdentities", "MartletResponder", "MartletCrypto", "CLinux", "CDashboard",
        ],
        isSmall: true,
        testImports: ["MartletSessionTesting"],
        excludes: ["Dashboard"]),
    Room(
        name: "MartletServer",
        imports: [
            "MartletCore", "MartletJSON", "MartletHTTP", "MartletConfig", "MartletCrypto", "MartletJOSE", "MartletTLS",
            "MartletIO", "MartletFetch", "MartletUpstreams", "MartletTracing", "MartletRedis", "MartletProvider",
            "MartletEvents", "MartletAudit", "MartletAccounts", "MartletSession", "MartletIdentities",
            "MartletBrowser", "MartletTraffic", "MartletRouter", "MartletResponder", "MartletAuthenticator",
            "MartletPages", "MartletDecisions", "MartletProxy", "MartletExplain", "MartletSignIn", "MartletAdmin",
            "CLinux",
            "CStart",
        ],
        isSmall: true,
        testImports: ["MartletHTTP2", "MartletProviderTesting", "BundledProviders", "AppleProvider"]),
    Room(
        name: "MartletCommands",
        imports: [
            "MartletCore", "MartletJSON", "MartletConfig", "MartletCrypto", "MartletTLS", "MartletIO", "MartletFetch",
            "MartletRedis", "MartletProvider", "MartletEvents", "MartletAudit", "MartletAccounts", "MartletSession",
            "MartletIdentities", "MartletRouter", "MartletResponder", "MartletDecisions", "MartletProxy",
            "MartletExplain", "MartletSignIn",
            "MartletSimulator", "MartletAdmin", "MartletServer", "MartletPlugins",
            "CLinux", "CCurl",
        ],
        isSmall: true),
    Room(
        name: "MartletTesting", imports: ["COpenSSL", "MartletCore", "MartletJSON"], path: "Tests/Support", tests: false
    ),
    Room(
        name: "MartletSessionTesting",
        imports: [
            "MartletTesting", "MartletCore", "MartletJSON", "MartletProvider", "MartletRedis", "MartletSession",
        ],
        path: "Tests/SessionSupport", tests: false),
    Room(
        name: "MartletDecisionsTesting",
        imports: [
            "MartletTesting", "MartletCore", "MartletConfig", "MartletBrowser", "MartletTraffic", "MartletUpstreams",
            "MartletProvider", "MartletRouter", "MartletResponder", "MartletDecisions",
        ],
        path: "Tests/DecisionsSupport", tests: false),
    Room(name: "WorldRedis", imports: ["MartletCore", "MartletCrypto", "CLua"], path: "Tests/World/Redis"),
]

/// Debian's C libraries, one target each, of which tests alone need Lua; `CHeadScan` is a header of ours, `CDashboard` has the files of the dashboard,
/// `CStart` what runs before Swift.
let libraries: [Target] = [
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CHeadScan"),
    .target(name: "CDashboard"),
    .target(name: "CStart"),
    .systemLibrary(name: "CMartletPlugin"),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
    .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CCares", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
    .systemLibrary(name: "CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
    .systemLibrary(name: "CCrypt", pkgConfig: "libcrypt", providers: [.apt(["libcrypt-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .systemLibrary(name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CPCRE2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
    .systemLibrary(name: "CLua", path: "Tests/World/CLua", providers: [.apt(["liblua5.1-0-dev"])]),
]

/// What the simulated machine is compiled with: as fast as it gets in debug builds too, and with pointers as in C, because
/// it stands where the system's kernel does.
let machine: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
    .unsafeFlags(["-O", "-enforce-exclusivity=unchecked"]),
]

/// The whole gateway in a simulated world.
let world: [Target] = [
    .target(
        name: "CWorld", path: "Tests/World/CWorld", cSettings: [.unsafeFlags(["-O2"])],
        linkerSettings: [.linkedLibrary("crypto"), .linkedLibrary("dl")]),
    .target(
        name: "WorldMachine", dependencies: ["CWorld", "CLinux"], path: "Tests/World/Machine", swiftSettings: machine),
    .executableTarget(
        name: "world",
        dependencies: [
            "CWorld", "CLinux", "CNghttp2", "WorldMachine", "WorldRedis", "MartletCore", "MartletJSON",
            "MartletCrypto", "MartletJOSE",
            "MartletCommands", "MartletServer",
            "MartletProvider", "BundledProviders",
        ],
        path: "Tests/World/World", swiftSettings: machine),
]

/// The integration tests, and the executable that they run.
let gateway: [Target] = [
    .executableTarget(
        name: "martlet",
        dependencies: ["MartletCore", "MartletCommands", "MartletServer", "MartletProvider", "BundledProviders"],
        path: "Sources/martlet",
        swiftSettings: strict,
        linkerSettings: exporting),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "MartletTesting", "MartletCore", "MartletJSON", "MartletCrypto", "MartletTLS", "MartletHTTP2",
            "MartletIO", "MartletFetch", "MartletRedis", "MartletProvider", "MartletEvents", "MartletAccounts",
            "MartletSession", "MartletSessionTesting", "MartletServer", "MartletTraffic", "WorldRedis",
        ],
        path: "Tests/Integration", swiftSettings: strict),
]

/// What `ROOM=MartletRouter swift test` builds: that room, what it and its tests import, and its tests alone.
@MainActor func targets(of room: Room) -> [Target] {
    var wanted: [String] = []
    var waiting = [room.name] + (room.tests ? room.testDependencies : [])
    while let name = waiting.popLast() {
        if wanted.contains(name) { continue }
        wanted.append(name)
        waiting += rooms.first { $0.name == name }?.imports ?? []
    }
    return libraries.filter { wanted.contains($0.name) }
        + rooms.filter { wanted.contains($0.name) }.map(\.target) + (room.tests ? [room.testTarget] : [])
}

let only: Room? = Context.environment["ROOM"].map { name in
    guard let room = rooms.first(where: { $0.name == name }) else { fatalError("ROOM=\(name) is no room of rooms") }
    return room
}

let package = Package(
    name: "martlet",
    products: only != nil
        ? []
        : [.executable(name: "martlet", targets: ["martlet"])]
            + (rooms.filter(\.isPublic).map(\.name) + ["MartletProviderTesting"]).map {
                .library(name: $0, targets: [$0])
            },
    targets: only.map { targets(of: $0) }
        ?? libraries + rooms.map(\.target) + rooms.filter(\.tests).map(\.testTarget) + gateway + world
)
