import MartletPages

/// Whatever a template is, an accepted one renders, and no value of the page gets out of its position.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPageTemplate(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    let (templates, errors) = PageTemplates.load("t") { _, _ in bytes }
    for error in errors {
        precondition(!error.message.isEmpty)
        precondition(error.position.map { $0.line > 0 && $0.column > 0 } == true)
    }
    guard let templates else { return 0 }
    let hostile = "\"'<x9q>"
    let site = PageSite(title: hostile, logo: hostile, templates: templates)
    let context = PageContext(site: site, choice: LanguageChoice(.english), path: "/", returnTo: hostile)
    let page = MessagePage(.crossSite, requestID: hostile, signIn: "/").render(in: context)
    let marker = Array("<x9q".utf8)
    let isInTemplate = bytes.indices.contains { bytes[$0...].starts(with: marker) }
    precondition(isInTemplate || !page.bytes.indices.contains { page.bytes[$0...].starts(with: marker) })
    return 0
}
