/// Drawings that are part of pages. All decorate a text that says the same.
enum PageIcons {
    /// Apple's logo, in the proportions that Apple's Human Interface Guidelines require. A trademark of Apple Inc.
    static let apple: HTML = """
        <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="M12.152 6.896c-.948 \
        0-2.415\
        -1.078-3.96-1.04-2.04.027-3.91 1.183-4.961 3.014-2.117 3.675-.546 9.103 1.519 12.09 1.013 1.454 2.208 3.09 \
        3.792 3.039 1.52-.065 2.09-.987 3.935-.987 1.831 0 2.35.987 3.96.948 1.637-.026 2.676-1.48 3.676-2.948 1.156\
        -1.688 1.636-3.325 1.662-3.415-.039-.013-3.182-1.221-3.22-4.857-.026-3.04 2.48-4.494 2.597-4.559-1.429-2.09\
        -3.623-2.324-4.39-2.376-2-.156-3.675 1.09-4.61 1.09zM15.53 3.83c.843-1.012 1.4-2.427 1.245-3.83-1.207.052\
        -2.662.805-3.532 1.818-.78.896-1.454 2.338-1.273 3.714 1.338.104 2.715-.688 3.559-1.701"/></svg>
        """

    /// WeChat's logo: two speech balloons. A trademark of Tencent.
    static let weChat: HTML = """
        <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path fill-rule="evenodd" d="M9 \
        2.4C4.1 \
        2.4.2 5.7.2 9.8c0 2.3 1.2 4.3 3.2 5.7L2.6 18l2.9-1.5c1 .3 2 .5 3.1.5h.8a6 6 0 0 1-.2-1.6c0-3.6 3.4-6.5 7.6-6.5h.7\
        C16.8 5.2 13.2 2.4 9 2.400zM6 6.200a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.400zm5.9 0a1.2 1.2 0 \
        1 1 0 2.4 1.2 1.2 0 0 1 0-2.400z"/><path fill-rule="evenodd" d="M23.8 15.300c0-3.4-3.3-6.1-7-6.1-4 0\
        -7.1 2.7-7.1 6.100s3.1 6.1 7.1 6.100c.8 0 1.7-.2 2.5-.4l2.3 1.2-.6-2.100c1.7-1.2 2.8-2.9 \
        2.8-4.800zM14.5 12.400a1 1 0 1 1 0 2 1 1 0 0 1 0-2zm4.6 0a1 1 0 1 1 0 2 1 1 0 0 1 0-2z"/></svg>
        """

    static let attention: HTML = """
        <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path fill-rule="evenodd" d="M10 \
        1.500a8.5 \
        8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zm-.9 4h1.800v5.800H9.100zm.9 7a1.1 1.1 0 1 1 0 2.2 1.1 1.1 0 0 1 \
        0-2.200z"/></svg>
        """

    static let check: HTML = """
        <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path fill-rule="evenodd" d="M10 \
        1.500a8.5 \
        8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM8.9 13.7 5.2 10l1.3-1.3 2.4 2.4 4.7-4.7 1.3 1.300z"/></svg>
        """
}
