internal import MartletBrowser
internal import MartletDecisions
internal import MartletHTTP

extension RequestRouter {
    /// Marks a navigation, before anything can be wrong with it: the head is not kept.
    @inline(never)
    mutating func markNavigation(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) {
        guard unsafe NavigationRule.isNavigation(bytes.span, head.fields, method: head.method),
            let pages = context.snapshot.browser?.errors
        else { return }
        var languages: String?
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            guard unsafe field.isNamed("accept-language", in: bytes.span) else { continue }
            languages = unsafe String(decoding: bytes[field.value], as: UTF8.self)
            break
        }
        exchanges[exchange].request.navigation = .of(language: pages.language(languages))
    }

    /// Has the response delete the cookies of the gateway that are of no use.
    @inline(never)
    mutating func deleteCookies(
        of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) {
        guard let browser = context.snapshot.browser else { return }
        for name in unsafe browser.cookies.find(in: bytes.span, head.fields).unusable {
            exchanges.setCookie(browser.cookies.deletion(of: name), of: exchange)
        }
    }
}
