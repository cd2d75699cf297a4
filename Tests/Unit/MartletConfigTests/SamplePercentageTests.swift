import MartletCore
import Testing

@testable import MartletConfig

@Suite struct `Percentages of requests` {
    /// The share of a route's mirror, in millionths; `nil` for an error.
    private func millionths(_ text: String) -> (Int?, String) {
        let (configuration, diagnostics) = load(
            """
            version: 1
            upstreams: { a: { endpoints: [http://127.0.0.1:1] }, b: { endpoints: [http://127.0.0.1:2] } }
            routes: [{ name: r, auth: none, upstream: a, mirror: { upstream: b, percent: \(text) } }]
            """)
        return (configuration?.routes.first?.mirror?.percentage.millionths, diagnostics.description)
    }

    @Test(arguments: [
        ("0", 0, "0%"), ("1", 10_000, "1%"), ("100", 1_000_000, "100%"), ("0.5", 5000, "0.5%"),
        ("12.3%", 123_000, "12.3%"),
        ("0.0001", 1, "0.0001%"), ("99.9999%", 999_999, "99.9999%"), ("\"5%\"", 50_000, "5%"), ("007", 70_000, "7%"),
    ])
    func `are numbers with decimals`(_ text: String, _ expected: Int, _ written: String) {
        let (found, diagnostics) = millionths(text)
        #expect(found == expected, "\(diagnostics)")
        #expect(SamplePercentage(millionths: expected).configurationText == written)
    }

    @Test(arguments: [
        "100.0001", "101", "1.", ".5", "1.00000", "1e2", "-1", "+1", "5 %", "\"%\"", "1.2.3", "x",
        "99999999999999999999",
    ])
    func `are nothing else`(_ text: String) {
        let (found, diagnostics) = millionths(text)
        #expect(found == nil && diagnostics.contains("is not a percentage from 0 to 100"), "\(diagnostics)")
    }
}
