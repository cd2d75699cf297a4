import MartletCore
import Testing

@testable import MartletConfig

/// The kinds of the available plugins in these tests.
let testKinds = ["apple", "greeting"]

/// Decodes a text as `test.yaml`.
func load(
    _ text: String, environment: [String: String] = [:], kinds: [String] = testKinds
) -> (configuration: GatewayConfiguration?, diagnostics: Diagnostics) {
    GatewayConfiguration.decode(
        text: Array(text.utf8), file: "test.yaml", environment: { environment[$0] }, knownKinds: kinds)
}

/// The minimal configuration as a whole file, to which tests append blocks.
let minimalFile = minimalSample + "\n"

/// Decodes the bytes of a file.
/// - Returns: the configuration, and the lines that `check` prints.
func decode(
    _ bytes: [UInt8], file: String = "gw.yaml"
) -> (configuration: GatewayConfiguration?, lines: [String]) {
    let (configuration, diagnostics) = GatewayConfiguration.decode(
        text: bytes, file: file, environment: { _ in nil }, knownKinds: testKinds)
    return (configuration, diagnostics.sorted.map(\.description))
}

/// Parses a text as `test.yaml`.
func parse(_ text: String, environment: [String: String] = [:]) -> (node: ConfigurationNode?, diagnostics: Diagnostics)
{
    var diagnostics = Diagnostics()
    let node = ConfigurationNode.parse(
        Array(text.utf8), file: "test.yaml", environment: { environment[$0] }, into: &diagnostics)
    return (node, diagnostics)
}

/// A text, its variables, and the lines that `check` prints for it: one for each diagnostic.
struct BadCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let expected: [String]

    init(_ name: String, _ text: String, _ expected: String...) {
        testDescription = name
        self.text = text
        self.expected = expected.map { "test.yaml:\($0)" }
    }
}

/// Reads one block of a text with a closure, as a plugin does.
func readBlock<Value>(
    _ text: String, file: String = "test.yaml", _ body: (inout ConfigurationReader) throws(ConfigurationError) -> Value
) throws -> (value: Value?, lines: [String]) {
    var diagnostics = Diagnostics()
    let node = try #require(
        ConfigurationNode.parse(Array(text.utf8), file: file, environment: { _ in nil }, into: &diagnostics))
    var reader = try ConfigurationReader(node, title: "provider 'test'")
    reader.diagnostics = diagnostics
    var value: Value?
    do {
        value = try body(&reader)
        reader.finish()
    } catch {
        reader.diagnostics.add(error)
    }
    return (value, reader.diagnostics.sorted.map(\.description))
}
