import MartletConfig
import MartletCore

/// A plugin's block with a value of every public type.
private struct Greeting: ConfigurationDecodable {
    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        _ = reader.optional("audiences", as: NonEmpty<String>.self)
        _ = reader.optional("leeway", default: Duration.zero, in: .zero ... .seconds(300))
        _ = reader.optional("size", as: ByteSize.self)
        _ = reader.optional("flag", as: Bool.self)
        _ = reader.optional("file", as: FilePath.self)
        _ = try reader.required("jwks_url", as: Located<URLText>.self)
    }
}

/// Bytes as a configuration file: reading it ends, with a configuration or with errors that have a place.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let environment = ["HOST": "127.0.0.1", "EMPTY": "", "TRICK": "${HOST}: [a, b]\n- c", "NUMBER": "7"]
    let (configuration, diagnostics) = GatewayConfiguration.decode(
        text: bytes, file: "fuzz.yaml", environment: { environment[$0] }, knownKinds: ["apple", "greeting"])
    precondition((configuration == nil) == diagnostics.hasErrors, "a configuration exactly when there is no error")
    for diagnostic in diagnostics.sorted {
        precondition(diagnostic.location.line > 0 && diagnostic.location.column > 0, "every error has a place")
        precondition(diagnostic.code.rawValue.hasPrefix("config."), "every error has a code of this module")
        precondition(!diagnostic.description.utf8.contains { $0 < 0x20 }, "every error is one line")
    }
    for provider in configuration?.providers ?? [] {
        var found = Diagnostics()
        let block = provider.block(nil).decode(Greeting.self, title: "provider", into: &found)
        precondition((block == nil) == found.hasErrors, "a block exactly when there is no error")
    }
    for route in configuration?.routes ?? [] {
        guard let upstream = route.upstream else {
            precondition(route.response != nil, "a route without an upstream has a response")
            continue
        }
        precondition(
            configuration?.upstreams.contains { $0.name.value == upstream.value } == true, "references exist")
    }
    return 0
}
