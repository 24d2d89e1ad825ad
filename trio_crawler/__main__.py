from trio_crawler.cli import main

main()
