import Testing

@testable import MartletPages

private let namespace = "xmlns=\"http://www.w3.org/2000/svg\""

@Suite struct `A logo` {
    private func kind(_ text: String) -> PageLogo.Kind? { PageLogo(Array(text.utf8), version: "v")?.kind }

    @Test(arguments: [
        ("<svg \(namespace)/>", true), ("\u{FEFF}<svg \(namespace)>", true), ("<svg\n\t\(namespace)>x", true),
        ("<?xml version=\"1.0\"?>\r\n<!-- <x> -->\n<svg viewBox=\"0 0 1 1\" \(namespace)></svg>", true),
        ("<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"svg11.dtd\"><svg \(namespace)/>", true),
        ("<!DOCTYPE svg [ <!ENTITY a \"b>\"> ]><svg \(namespace)/>", true),
        ("<svg/>", false), ("<svg><g \(namespace)/></svg>", false), ("<svgx \(namespace)/>", false),
        ("<html \(namespace)><svg \(namespace)/></html>", false), ("x<svg \(namespace)/>", false),
        ("<?xml", false), ("<!-- <svg \(namespace)/>", false), ("<!DOCTYPE svg [ ", false), ("<svg", false),
        ("", false),
    ])
    func `is an SVG by its first element`(text: String, isSVG: Bool) {
        #expect(kind(text) == (isSVG ? .svg : nil))
    }

    @Test func `is an image by its first bytes`() {
        #expect(PageLogo([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0], version: "v")?.kind == .png)
        #expect(PageLogo([0xFF, 0xD8, 0xFF, 0xE0], version: "v")?.kind == .jpeg)
        #expect(kind("RIFF1234WEBPVP8 ") == .webP && kind("RIFF1234WAVE") == nil)
        // GIF, compressed SVG, and a PNG whose line ends were converted.
        #expect(kind("GIF89a") == nil && PageLogo([0x1F, 0x8B, 8], version: "v") == nil)
        #expect(PageLogo([0x89, 0x50, 0x4E, 0x47, 0x0A, 0x1A, 0x0A], version: "v") == nil)
    }

    @Test func `is a document without scripts and origin where it is opened by itself`() throws {
        let logo = try #require(PageLogo(Array("<svg \(namespace)/>".utf8), version: "v"))
        let fields = Dictionary(logo.fields.map { ($0.name, $0.value) }) { first, _ in first }
        #expect(fields["Content-Type"] == "image/svg+xml" && fields["X-Content-Type-Options"] == "nosniff")
        #expect(
            fields["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox")
    }
}
